// SPDX-License-Identifier: Apache-2.0
// Flat loops over whole tensors. Host and device; f64, f32, bf16.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// Sum of squares in double, over fixed blocks of 65,536 elements added in order: same bits for any
/// number of threads, not for any sharding (that is ExactSum). Waits for the device.
double sum_of_squares(const at::Tensor& values);

}  // namespace tessera::kernels
