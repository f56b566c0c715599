// SPDX-License-Identifier: Apache-2.0
// This rank's queries against one block of keys and values after the other, forward and backward.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <optional>

#include "attention_tiles.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/parallel/context_attention.hpp"

namespace tessera::parallel {

/// What is asked of one attention, whatever the values.
struct AttentionPlan {
  ContextParallel context;
  std::shared_ptr<const PackedDocuments> documents;
  double scale = 1;
  std::int64_t window = 0;
};

/// Keys and values [B, S, Hkv, d] of one rank's positions.
struct KeyValueBlock {
  at::Tensor k, v;
};

/// The whole attention where one call of a kernel takes it; then `block` holds all keys.
std::optional<kernels::AttentionPart> whole_part(const AttentionPlan& plan, const at::Tensor& q,
                                                 const KeyValueBlock& block);

/// Adds one logit for each head that has no value.
void add_sinks(kernels::AttentionValue& value, const at::Tensor& sinks);

/// Of the sinks, where `value` is the attention with them.
at::Tensor sinks_gradient(const at::Tensor& sinks, const kernels::AttentionValue& value,
                          const at::Tensor& grad_out);

/// Softmax over the blocks seen so far.
class AttentionSum {
 public:
  AttentionSum(const AttentionPlan& plan, const at::Tensor& q, std::int64_t value_dim);
  /// Adds the keys of context-parallel rank `owner`.
  void add(const KeyValueBlock& block, int owner);
  /// In the sum_type.
  kernels::AttentionValue value() const { return {out_, logsumexp_}; }

 private:
  const AttentionPlan& plan_;
  at::Tensor q_, out_, logsumexp_;
};

/// The way back: `value` is what the forward gave.
class AttentionGradient {
 public:
  AttentionGradient(const AttentionPlan& plan, const at::Tensor& q,
                    const kernels::AttentionValue& value, const at::Tensor& grad_out);
  /// Adds to the gradients of a block, of the block's shapes and sum_type.
  void add(const KeyValueBlock& block, int owner, const KeyValueBlock& gradients);
  at::Tensor queries() const { return grad_q_.to(q_.scalar_type()); }

 private:
  const AttentionPlan& plan_;
  at::Tensor q_, grad_out_, grad_q_;
  kernels::AttentionValue value_;
};

}  // namespace tessera::parallel
