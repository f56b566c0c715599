// SPDX-License-Identifier: Apache-2.0
// Transposes of matrices, and copies of them. LibTorch makes those on a single thread.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// A matrix whose columns are contiguous, and whose rows are not.
inline bool by_columns(const at::Tensor& x) {
  return x.dim() == 2 && x.stride(0) == 1 && x.stride(1) > 1;
}

/// x [m, n] float32 on the host, each row contiguous -> [n, m], contiguous, by all threads.
at::Tensor transposed_copy(const at::Tensor& x);

}  // namespace tessera::kernels
