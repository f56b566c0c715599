// SPDX-License-Identifier: Apache-2.0
// A unit on this rank: its cells, the groups that hold its weights, and one step forward or
// backward through it.
//
// Autograd stays inside a unit: it runs on a detached input that requires a gradient, and backward
// starts from its output.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/model/balance_loss.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/activation_offload.hpp"
#include "tessera/parallel/chunked_products.hpp"
#include "tessera/parallel/recompute.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/parallel/tensor_parallel.hpp"
#include "tessera/plan/fused_loss.hpp"
#include "tessera/plan/reshard_policy.hpp"

namespace tessera::parallel {

/// What the last unit needs to turn logits into the loss of one microbatch.
struct LossInput {
  at::Tensor labels;         ///< [T] int64, -100 = ignored
  double scale = 1;          ///< 1 / valid tokens of the whole global batch
  double balance_scale = 1;  ///< of the balance loss: 1 / microbatches of the whole global batch
};

/// A unit's pass over one microbatch, kept until its backward.
struct TapeEntry {
  model::Flow in, out;
  at::Tensor loss;          ///< scalar; defined after the last unit of the model only
  at::Tensor token_losses;  ///< with the loss: unscaled, [T]
  at::Tensor one;           ///< with the loss: TokenLoss::one
  at::Tensor balance;       ///< this rank's part of the balance loss in it, if there is one
  Recompute recompute = Recompute::nothing;  ///< unit: only `in` is there
  Remakes remakes;
  ActivationOffload::Pass offloaded;  ///< null: nothing is
};

/// How tensor parallelism is done, and where experts are.
struct TensorParallel {
  comm::Communicator& tp;
  /// between products each rank has its part of the tokens; false: all of them
  bool sequence = true;
  bool vocabulary_loss = true;  ///< the loss of logits that stay cut over the vocabulary; false:
                                ///< they are gathered first
  /// how tokens are transferred around products; count 0: whole, before and after them
  TokenChunks chunks = {};
  const model::TokenExchange* exchange = &model::no_exchange();
  /// each expert is shared by the ranks of tp, which all get every token
  bool experts_cut = false;
  /// ranks that hold a microbatch's tokens, each its own; null = this one
  comm::Communicator* microbatch = nullptr;
  /// where the loss is fused, logits stay cut
  plan::FusedLoss fused_loss = plan::FusedLoss::never;
};

class UnitOperations;

class Unit {
 public:
  /// `buffers`: as Model::buffers, defined where cells of the unit use them. `remade`: see
  /// plan::RecomputePolicy::products.
  Unit(const model::Model& model, const model::UnitSpec& spec, std::vector<ShardGroup*> groups,
       const TensorParallel& tensor, std::span<const at::Tensor> buffers = {},
       std::span<const std::string> remade = {});

  const std::string& name() const { return name_; }
  const std::vector<ShardGroup*>& groups() const { return groups_; }

  void start_unshard();
  void finish_unshard();
  void reshard();
  /// Each rank keeps its part of what the ranks of `inner` share, and of experts those of
  /// `experts`: null = nothing.
  void reshard_within(comm::Communicator& inner, comm::Communicator* experts);

  /// Runs the cells on a detached copy of `in`. `batch` rows a microbatch; `context` carries
  /// position and cache. With `loss` the logits become a scalar loss. Weights must be gathered.
  /// With `recompute` the entry keeps less: Recompute::unit leaves no graph at all. Where rows
  /// travel, it calls TokenExchange::meanwhile(), as backward() does.
  TapeEntry forward(const model::Flow& in, const model::CellContext& context, const LossInput* loss,
                    Recompute recompute = Recompute::nothing) const;
  /// Sends `out_gradients` (undefined slots have none; ignored after the loss) back through the
  /// entry, whose forward runs again if only its input was kept; the result has the gradients of
  /// the entry's inputs, and the leaves of the groups theirs. Weights must be gathered.
  model::Flow backward(TapeEntry entry, const model::CellContext& context,
                       const model::Flow& out_gradients) const;
  /// Of an entry, and of what operations `saved` in its forward: tensors whose memory nobody else
  /// reads, without those that take next to nothing. One of each memory.
  std::vector<at::Tensor> own_tensors(const TapeEntry& entry,
                                      std::span<const at::Tensor> saved) const;

 private:
  friend class UnitForward;
  struct Step {
    const model::CellSpec* cell;
    const model::CellFunctions* functions;
    std::vector<model::Weight> weights;
    std::vector<at::Tensor> buffers;
    /// weights whose products are made again in Recompute::operations
    std::vector<const c10::TensorImpl*> remade;
    std::size_t beside = 0;  ///< cells that follow, and compute while the rows of this one travel
  };
  void hide_dispatch();
  std::int64_t loss_chunk(const LossInput& loss) const;
  TokenLoss fused_loss(const Step& output, model::Flow& flow, const LossInput& loss,
                       std::int64_t chunk_tokens) const;
  TokenLoss loss_of(const at::Tensor& logits, const LossInput& loss) const;
  void add_balance(TapeEntry& entry, const at::Tensor& slot, const LossInput& loss) const;
  at::Tensor for_product(const at::Tensor& tokens) const;
  at::Tensor for_experts(const at::Tensor& tokens) const;
  at::Tensor from_experts(const at::Tensor& tokens) const;
  void begin(const Step& step, model::Flow& flow, model::CellContext& context,
             UnitOperations& operations) const;
  void end(const Step& step, const Step* next, model::Flow& flow, const model::CellContext& context,
           UnitOperations& operations) const;
  void gather(const model::CellSpec& cell, model::Flow& flow, UnitOperations& operations) const;
  void reduce(const model::CellSpec& cell, model::Flow& flow, UnitOperations& operations) const;

  std::string name_;
  std::vector<ShardGroup*> groups_;
  TensorParallel tensor_;
  std::shared_ptr<comm::Communicator> alone_ = comm::make_self_communicator("one rank");
  std::vector<Step> steps_;
  model::BalanceLoss balance_;
  std::int64_t vocab_;
  std::int64_t vocab_begin_ = 0;
};

/// A unit of a stage, and what policies say of it.
struct UnitState {
  Unit unit;
  std::int64_t number;  ///< among the model's units
  bool block;           ///< neither the embedding nor [norm, output]
  plan::UnitReshard reshard = {};
  Recompute recompute = Recompute::nothing;
};

}  // namespace tessera::parallel
