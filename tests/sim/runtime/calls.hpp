// SPDX-License-Identifier: Apache-2.0
// What all calls of the CUDA runtime have in common.
#pragma once

#include "device.hpp"

namespace tessera::cudart {

constexpr int cuda_version = 13000;

/// Keeps an error for cudaGetLastError of this thread. cudaErrorNotReady is none.
cudaError_t remember(cudaError_t error);

/// A call that needs no device in order: body(runtime).
template <class Body>
cudaError_t call(Body body) {
  if (const cudaError_t error = Runtime::unusable(); error != cudaSuccess) return error;
  if (sim::settings().driver < cuda_version) return remember(cudaErrorInsufficientDriver);
  const InsideDouble inside;
  Runtime& runtime = Runtime::get();
  if (runtime.devices() == 0) return remember(cudaErrorNoDevice);
  return remember(body(runtime));
}

/// A call that a failed device refuses.
template <class Body>
cudaError_t device_call(Body body) {
  return call([&](Runtime& runtime) {
    const cudaError_t sticky = runtime.current_device().sticky();
    return sticky != cudaSuccess ? sticky : body(runtime);
  });
}

/// The same with the stream of this handle: body(runtime, stream).
template <class Body>
cudaError_t stream_call(cudaStream_t handle, Body body) {
  return device_call([&](Runtime& runtime) {
    const auto stream = runtime.find_stream(handle);
    return stream ? body(runtime, *stream) : cudaErrorInvalidResourceHandle;
  });
}

/// Prints once that the simulated GPU lacks `what`.
cudaError_t refuse(const char* what);

}  // namespace tessera::cudart
