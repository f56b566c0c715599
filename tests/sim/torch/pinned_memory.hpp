// SPDX-License-Identifier: Apache-2.0
// Pinned host memory: LibTorch's caching of it, which libtorch_cuda.so would have.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace tessera::sim {

/// Memory of cudaMallocHost, given out again once the streams that were recorded on it have come
/// past that.
at::HostAllocator& pinned_memory();

}  // namespace tessera::sim
