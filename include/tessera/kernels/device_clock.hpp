// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// Gives `stream` (a cudaStream_t) a kernel that writes the GPU's clock, in nanoseconds, to `at`,
/// which may be pinned memory of the host. Only builds with CUDA have it.
void write_device_time(void* stream, std::uint64_t* at);

}  // namespace tessera::kernels
