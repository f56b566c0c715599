// SPDX-License-Identifier: Apache-2.0
// The output layer and the cross-entropy in one, a chunk of tokens at a time: the logits of a
// microbatch never exist whole. Forward computes the gradients too, while it has a chunk's logits,
// and backward only scales them (Liger Kernel, https://arxiv.org/abs/2410.10989, section 3.3).
//
// There are as many matrix products as with whole logits. Memory: the logits of one chunk; and from
// forward to backward the gradients of `x` and `weight`, where whole logits would be kept.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/comm/communicator.hpp"
#include "tessera/parallel/tensor_parallel.hpp"

namespace tessera::parallel {

/// What a linear cross-entropy is computed with, in addition to its tensors.
struct LinearLoss {
  std::int64_t vocab_begin;   ///< of the rows of this rank's weight
  double scale;               ///< of the loss
  std::int64_t chunk_tokens;  ///< at least 1
  comm::Communicator& tp;     ///< the ranks over which the vocabulary is cut; outlives every graph
};

/// vocabulary_parallel_loss of x [T, D] times the transpose of `weight` [vocab / tp, D]. The same
/// x on all ranks; its gradient is a partial sum, as that of any product with a part of the rows.
///
/// The gradient of a bfloat16 weight is summed over chunks in float32 and rounded once. It is there
/// after forward: WeightGradients cannot put it off.
TokenLoss linear_cross_entropy(const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& labels, const LinearLoss& how);

}  // namespace tessera::parallel
