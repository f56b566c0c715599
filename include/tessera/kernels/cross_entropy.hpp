// SPDX-License-Identifier: Apache-2.0
// The pieces of a cross-entropy whose vocabulary is cut over ranks. With m = max over all ranks of
// row_max and z = sum over all ranks of sum_exp, the loss of a row is log(z) - target, and the
// gradient is softmax - onehot.
//
// logits [N, V_local] f64, f32 or bf16, rows contiguous; labels [N] int64 or int32, global ids,
// -100 = ignored row; the columns of this rank are the ids [vocab_begin, vocab_begin + V_local).
// "acc" is f64 for f64 logits, otherwise f32.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>

namespace tessera::kernels {

inline constexpr std::int64_t ignored_label = -100;

/// [N] acc: the largest logit of each row. NaN where a row holds a NaN.
at::Tensor row_max(const at::Tensor& logits);

struct SumExpAndTarget {
  at::Tensor sum_exp;  ///< [N] acc: sum over this rank's columns of exp(logit - row_max)
  at::Tensor target;   ///< [N] acc: logit of the label - row_max; 0 where the label is on another
                       ///< rank or is ignored
};
SumExpAndTarget sum_exp_and_target(const at::Tensor& logits, const at::Tensor& row_max,
                                   const at::Tensor& labels, std::int64_t vocab_begin);

/// logits <- (exp(logit - row_max) / sum_exp - [column is the label]) * scale, in place; rows with
/// label -100 become 0. row_max and sum_exp are those of the whole vocabulary.
void softmax_gradient_(at::Tensor& logits, const at::Tensor& row_max, const at::Tensor& sum_exp,
                       const at::Tensor& labels, std::int64_t vocab_begin, double scale);

}  // namespace tessera::kernels
