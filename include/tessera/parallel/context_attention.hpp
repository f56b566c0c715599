// SPDX-License-Identifier: Apache-2.0
// Attention over sequences that several ranks share, and inside of packed documents.
//
// Each context-parallel rank has the queries, keys and values of its own positions
// (plan::SequenceCut) and needs all earlier keys. Either the blocks of keys and values travel
// around a ring while attention computes with the one that is here (Liu et al.,
// https://arxiv.org/abs/2310.01889), or they are gathered at once. In backward the blocks travel
// again (nothing of the other ranks is kept), followed by the gradients of each block.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/model/operations.hpp"
#include "tessera/plan/sequence_cut.hpp"
#include "tessera/plan/sharding_plan.hpp"

namespace tessera::parallel {

/// For each sequence of a microbatch the first positions of its documents, ascending, the first of
/// them 0; the whole sequence whatever the rank. No lists = no documents: each sequence is one
/// text.
using Documents = std::vector<std::vector<std::int64_t>>;

/// Those of a microbatch, for all its layers.
class PackedDocuments {
 public:
  explicit PackedDocuments(Documents begins) : begins_(std::move(begins)) {}
  const Documents& begins() const { return begins_; }
  /// The runs of one document among this rank's positions, on `device`. They travel when they are
  /// asked for the first time, and the host does not wait.
  const kernels::AttentionSegments& segments(std::span<const Range> held, at::Device device) const;

 private:
  Documents begins_;
  mutable std::once_flag sent_;
  mutable kernels::AttentionSegments segments_;
};

struct ContextParallel {
  comm::Communicator* cp = nullptr;  ///< must outlive every graph
  plan::SequenceCut cut;
  plan::Rotation rotation = plan::Rotation::ring;
};

/// Operations::attention for this rank's positions of the sequences; scores between documents are
/// hidden. Products of blocks that the mask hides wholly are skipped. Sums of float32 or wider; the
/// same bits in every run. Collective over cp, backward too.
at::Tensor context_attention(const model::Attention& input, const ContextParallel& context,
                             std::shared_ptr<const PackedDocuments> documents);

/// `inner` with that attention where ranks share sequences, documents are packed, or windows or
/// sinks would make `inner` hold all scores.
class ContextOperations final : public model::Operations {
 public:
  ContextOperations(const model::Operations& inner, const ContextParallel& context,
                    std::shared_ptr<const PackedDocuments> documents)
      : inner_(inner), context_(context), documents_(std::move(documents)) {}

  std::vector<at::Tensor> products(const at::Tensor& x,
                                   std::span<const model::Weight> weights) const override {
    return inner_.products(x, weights);
  }
  std::function<at::Tensor()> product_again(const at::Tensor& x,
                                            const model::Weight& weight) const override {
    return inner_.product_again(x, weight);
  }
  at::Tensor expert_product(const at::Tensor& x, const model::Weight& weight,
                            const at::Tensor& groups) const override {
    return inner_.expert_product(x, weight, groups);
  }
  std::function<at::Tensor()> expert_product_again(const at::Tensor& x, const model::Weight& weight,
                                                   const at::Tensor& groups) const override {
    return inner_.expert_product_again(x, weight, groups);
  }
  at::Tensor attention(const model::Attention& input) const override {
    const bool own =
        documents_ || context_.cut.ranks() > 1 || input.window > 0 || input.sinks.defined();
    return own ? context_attention(input, context_, documents_) : inner_.attention(input);
  }
  void remakable(const at::Tensor& made, std::function<at::Tensor()> remake) const override {
    inner_.remakable(made, std::move(remake));
  }

 private:
  const model::Operations& inner_;
  ContextParallel context_;
  std::shared_ptr<const PackedDocuments> documents_;
};

}  // namespace tessera::parallel
