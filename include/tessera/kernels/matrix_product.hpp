// SPDX-License-Identifier: Apache-2.0
// Matrix products. On processors without bfloat16 instructions LibTorch multiplies bfloat16
// matrices element by element, 20 times slower than float32. There, and where bfloat16 instructions
// are no faster than float32's (has_fast_bfloat16), these functions widen the operands to float32,
// multiply, and round once: the value of a bfloat16 product with float32 sums. Large float32
// products run in oneDNN where that is faster than MKL (has_fast_onednn). Elsewhere, and for other
// types and devices, they call LibTorch.
//
// Operands are widened tile by tile: a product needs at most 24 MiB in addition to its result (more
// where a row of an operand is longer than 32,768 elements). No widened weight is kept between
// products: to widen it costs below 1 % of a product of 512 rows.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>

namespace tessera::kernels {

/// Whether products of tensors like `x` are widened: bfloat16 in host memory, and no fast
/// instructions for it.
bool widens(const at::Tensor& x);

/// What this process computes with, e.g. "avx2, float32 MKL, bfloat16 widened".
std::string host_engines();

/// a [m, k] times b [k, n] -> [m, n], of the operands' type. Not differentiable.
at::Tensor mm(const at::Tensor& a, const at::Tensor& b);
/// out [m, n] <- a b. `out` and `sum` have the operands' type, or float32 for bfloat16 operands:
/// then nothing is rounded. Not differentiable.
void mm_out(at::Tensor out, const at::Tensor& a, const at::Tensor& b);
/// sum [m, n] <- sum + a b, rounded at most once. Not differentiable.
void addmm_(at::Tensor sum, const at::Tensor& a, const at::Tensor& b);

/// x [..., in] times the transpose of weight [out, in] -> [..., out]; differentiable.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight);
/// a [..., m, k] times b [..., k, n], with equal leading dimensions; differentiable. Widens whole
/// operands.
at::Tensor matmul(const at::Tensor& a, const at::Tensor& b);

}  // namespace tessera::kernels
