// SPDX-License-Identifier: Apache-2.0
// Rows of a table by their numbers: the first layer of a model.
#pragma once

#include <cstdint>

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// y[t] = table[tokens[t] - row_begin], and zeros where the table has no such row. With the rows
/// of a vocabulary spread over ranks, the sum of all their results is the embedding. table [V, D]
/// (f64, f32, bf16); tokens [...] int64, on its device; y [..., D]. Keeps the tokens for backward.
///
/// Differentiable in the table: the gradient of a row is the sum over its tokens, in a fixed order
/// and in at least float32, rounded once. LibTorch's embedding rounds after each addition on a
/// host, where a bfloat16 sum of equal gradients stays at 256. On a GPU it rounds after each 32
/// tokens, if there are up to 3,072.
at::Tensor embedding(const at::Tensor& table, const at::Tensor& tokens, std::int64_t row_begin = 0);

}  // namespace tessera::kernels
