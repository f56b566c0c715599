// SPDX-License-Identifier: Apache-2.0
// Conversions between bfloat16 and float32 of whole host tensors.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// bfloat16 `x` in float32. A matrix whose columns are contiguous keeps that order.
at::Tensor widened(const at::Tensor& x);

/// bfloat16 `out` <- float32 `wide` of the same shape, rounded to nearest even.
void narrow_into(const at::Tensor& out, const at::Tensor& wide);

/// float32 `wide` in bfloat16, contiguous.
at::Tensor narrowed(const at::Tensor& wide);

}  // namespace tessera::kernels
