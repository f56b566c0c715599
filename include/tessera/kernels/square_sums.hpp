// SPDX-License-Identifier: Apache-2.0
// Sums of squares that stay where the values are, so that one copy brings those of many tensors to
// the host. Host and device; f64, f32, bf16; tensors must not be empty.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// Sums in double of the squares of blocks of 65,536 elements. Added in order they have the same
/// bits for any number of threads, not for any sharding (that is exact_squares()).
at::Tensor block_squares(const at::Tensor& values);

/// The exact sum's words, int64: see ExactSum::set_words().
at::Tensor exact_squares(const at::Tensor& values);

}  // namespace tessera::kernels
