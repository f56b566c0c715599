// SPDX-License-Identifier: Apache-2.0
// Tensors with shapes and no values, on LibTorch's device "meta". Code that runs on a GPU runs on
// them: it allocates the same sizes in the same order, and computes nothing.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// The device "meta", made ready for this. Its memory is counted (Allocations, allocated_bytes) in
/// blocks of 512 bytes, as LibTorch does for GPUs. Addresses are distinct, and reading one ends the
/// process. Values that the host asks for are 0.
at::Device shape_device();

/// Is it that device?
inline bool shapes_alone(at::Device device) { return device.is_meta(); }

}  // namespace tessera::kernels
