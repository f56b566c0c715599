// SPDX-License-Identifier: Apache-2.0
// Root-mean-square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467).
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// y = x * rsqrt(mean(x^2 over the last dim) + eps) * weight; differentiable in x and weight.
/// x [..., D] and weight [D] of one dtype: f64, f32 or bf16; statistics and sums in f32 (f64 for
/// f64), one rounding at the end. The gradient of weight is summed over fixed blocks of rows in a
/// fixed order: its bits do not depend on the number of threads. Throws ContractViolation when
/// shapes or dtypes do not fit.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

struct SumAndNorm {
  at::Tensor sum, norm;
};

/// x + residual, rounded to their type, and rms_norm() of that, in one pass; in backward the
/// gradients of both, too. The residual may be undefined: the sum then shows the memory of a dense
/// x.
SumAndNorm summed_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                           const at::Tensor& weight, double eps);

}  // namespace tessera::kernels
