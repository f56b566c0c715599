// SPDX-License-Identifier: Apache-2.0
// The transpose of a matrix as a copy. LibTorch makes one on a single thread.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// x [m, n] float32 on the host, each row contiguous -> [n, m], contiguous, by all threads.
at::Tensor transposed_copy(const at::Tensor& x);

}  // namespace tessera::kernels
