// SPDX-License-Identifier: Apache-2.0
// The stream on which the caller computes, as device.hpp's provider returns it. Device files only.
#pragma once

#include <cuda_runtime_api.h>

namespace tessera::comm {

cudaStream_t compute_stream();
/// Throws Error(environment) unless `code` is cudaSuccess: names the call, or says that earlier
/// work on the GPU failed.
void check_cuda(cudaError_t code, const char* call);

}  // namespace tessera::comm
