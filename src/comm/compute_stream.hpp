// SPDX-License-Identifier: Apache-2.0
// Streams: the one on which the caller computes, as device.hpp's provider returns it, and those of
// communication. Device files only.
#pragma once

#include <cuda_runtime_api.h>

namespace tessera::comm {

cudaStream_t compute_stream();
/// Throws Error(environment) unless `code` is cudaSuccess: names the call, or says that earlier
/// work on the GPU failed.
void check_cuda(cudaError_t code, const char* call);

/// Whether what `stream` is given becomes a part of a graph.
inline bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

/// A new stream with the highest priority.
inline cudaStream_t communication_stream() {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
             "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
             "cudaStreamCreateWithPriority");
  return stream;
}

}  // namespace tessera::comm
