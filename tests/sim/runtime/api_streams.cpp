// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"
#include "capture.hpp"
#include "copy_counts.hpp"
#include "issue.hpp"

using namespace tessera::cudart;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (flags != cudaStreamNonBlocking)
    return refuse(
        "streams that wait for the default stream: create them with cudaStreamNonBlocking");
  return device_call([&](Runtime& runtime) {
    *stream = runtime.add_stream(priority);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    return runtime.remove_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return stream_call(handle, [&](Runtime&, Stream& stream) {
    *priority = stream.priority();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  ++held_callers;
  return stream_call(handle, [](Runtime&, Stream& stream) {
    cudaError_t error = refuse_captured(stream, "cudaStreamSynchronize");
    if (error == cudaSuccess) error = unsafe_call("cudaStreamSynchronize");
    return error == cudaSuccess ? wait_for(stream, "stream") : error;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return stream_call(handle, [](Runtime& runtime, Stream& stream) {
    cudaError_t error = refuse_captured(stream, "cudaStreamQuery");
    if (error == cudaSuccess) error = unsafe_call("cudaStreamQuery");
    if (error != cudaSuccess) return error;
    const std::lock_guard lock(runtime.issue);
    if (!stream.idle()) return cudaErrorNotReady;
    runtime.races.host_saw(*runtime.races.end_of(stream.time));
    return runtime.device(stream.device()).sticky();
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  return stream_call(handle, [&](Runtime& runtime, Stream& stream) {
    const auto found = runtime.events.find(event);
    if (!found) return cudaErrorInvalidResourceHandle;
    const auto record = found->record();
    return record ? wait(stream, record) : cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return stream_call(handle, [&](Runtime&, Stream& stream) {
    return enqueue(stream, "cudaLaunchHostFunc", {}, [function, data] {
      function(data);
      return cudaSuccess;
    });
  });
}
