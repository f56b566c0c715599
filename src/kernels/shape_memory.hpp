// SPDX-License-Identifier: Apache-2.0
// Addresses of tensors that have shapes alone.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// Makes LibTorch's device "meta" allocate here; more calls do nothing.
void install_shape_memory();

/// Bytes of the tensors that live.
std::int64_t shape_memory_bytes();

}  // namespace tessera::kernels
