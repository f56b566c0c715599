// SPDX-License-Identifier: Apache-2.0
// Tensor and sequence parallelism as autograd functions at cell boundaries.
//
// Between the cells that multiply, each tensor-parallel rank holds a piece of the *tokens*
// (Megatron's sequence parallelism, https://arxiv.org/abs/2205.05198, over rows x positions
// flattened: the pieces are contiguous, so nothing is copied).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/comm/communicator.hpp"

namespace tessera::parallel {

/// The sum over the ranks, which autograd does not see.
at::Tensor all_reduced(const at::Tensor& partial, comm::Communicator& tp);

/// [T / tp, ...] on each rank -> [T, ...] on all. Backward: reduce_scatter of the gradients.
at::Tensor gather_tokens(const at::Tensor& piece, comm::Communicator& tp);

/// Partial sums [T, ...] on each rank -> this rank's tokens of the sum, [T / tp, ...]. Backward:
/// all_gather.
at::Tensor reduce_tokens(const at::Tensor& partial, comm::Communicator& tp);

/// Without sequence parallelism (Megatron's f and g, https://arxiv.org/abs/1909.08053): the same
/// tokens on all ranks, whose gradients are partial sums; and partial sums, of which every rank
/// gets the sum.
at::Tensor share_tokens(const at::Tensor& tokens, comm::Communicator& tp);
at::Tensor sum_tokens(const at::Tensor& partial, comm::Communicator& tp);

/// The same tokens on all ranks [T, ...] -> this rank's [T / tp, ...], and back: each is the
/// other's backward, for gradients are whole on all ranks, too.
at::Tensor own_tokens(const at::Tensor& tokens, comm::Communicator& tp);
at::Tensor all_tokens(const at::Tensor& piece, comm::Communicator& tp);

/// [T, columns / tp] on each rank -> [T, columns] on all. Every rank computes the same from them,
/// so backward takes this rank's columns.
at::Tensor gather_columns(const at::Tensor& piece, comm::Communicator& tp);

/// A loss and what it is the sum of.
struct TokenLoss {
  at::Tensor loss;          ///< scalar, scaled
  at::Tensor token_losses;  ///< [T], unscaled, without a graph; 0 where ignored
  /// The gradient from which backward starts: 1. Of any other tensor the host must ask a device for
  /// the value, and wait.
  at::Tensor one;
};

/// Cross-entropy of logits [T, vocab / tp] (this rank's columns from `vocab_begin`) with labels [T]
/// (int64, -100 = ignored), summed over valid tokens, times `scale`, as a scalar in float32
/// (float64 for float64 logits); equal on all ranks of tp. The gradient replaces the logits in
/// their own memory.
TokenLoss vocabulary_parallel_loss(const at::Tensor& logits, const at::Tensor& labels,
                                   std::int64_t vocab_begin, double scale, comm::Communicator& tp);

}  // namespace tessera::parallel
