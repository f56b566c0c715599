// SPDX-License-Identifier: Apache-2.0
// Tensors as communicators see them.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/comm/buffer.hpp"

namespace tessera::parallel {

DType dtype_of(at::ScalarType type);
at::ScalarType scalar_type_of(DType dtype);

/// Where tensors of the device are.
comm::Memory memory_of(at::Device device);

/// The tensor's memory; it must be contiguous and outlive the operation.
comm::Buffer buffer_of(const at::Tensor& tensor);

}  // namespace tessera::parallel
