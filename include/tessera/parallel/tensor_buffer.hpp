// Tensors as communicators see them.
#pragma once

#include <torch/torch.h>

#include "tessera/comm/buffer.hpp"

namespace tessera::parallel {

DType dtype_of(torch::ScalarType type);
torch::ScalarType scalar_type_of(DType dtype);

/// The tensor's memory; it must be contiguous and outlive the operation.
comm::Buffer buffer_of(const torch::Tensor& tensor);

}  // namespace tessera::parallel
