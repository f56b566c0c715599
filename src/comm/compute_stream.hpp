// The stream on which the caller computes, as device.hpp's provider tells it. Device files only.
#pragma once

#include <cuda_runtime_api.h>

namespace tessera::comm {

cudaStream_t compute_stream();
/// Throws Error(environment) that names the call unless `code` is cudaSuccess.
void check_cuda(cudaError_t code, const char* call);

}  // namespace tessera::comm
