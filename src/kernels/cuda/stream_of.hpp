// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/cuda/CUDAStream.h>

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// On which work on the tensor is issued.
inline cudaStream_t stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

}  // namespace tessera::kernels
