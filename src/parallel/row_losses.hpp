// SPDX-License-Identifier: Apache-2.0
// The losses of rows of logits whose columns are cut over ranks, and what their gradients need.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/comm/communicator.hpp"

namespace tessera::parallel {

/// [N] each, in at least float32.
struct RowLosses {
  at::Tensor losses;            ///< 0 where the label is ignored
  at::Tensor row_max, sum_exp;  ///< of the whole vocabulary, for kernels::softmax_gradient_
};

/// Of this rank's columns from `vocab_begin`; equal on all ranks of tp.
RowLosses row_losses(const at::Tensor& logits, const at::Tensor& labels, std::int64_t vocab_begin,
                     comm::Communicator& tp);

/// The sum of losses, times `scale`, in their type.
at::Tensor scaled_sum(const at::Tensor& losses, double scale);

/// Whether a loss's gradient is known to be 1: it is TokenLoss::one, or a 1 in host memory. No
/// device is asked.
bool is_one(const at::Tensor& gradient, const at::Tensor& one);

}  // namespace tessera::parallel
