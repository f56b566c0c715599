// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"
#include "capture.hpp"

using namespace tessera::cudart;

namespace {

Registry<cudaGraph_t, Graph>& graphs() {
  static auto& all = *new Registry<cudaGraph_t, Graph>;
  return all;
}
Registry<cudaGraphExec_t, GraphExec>& executables() {
  static auto& all = *new Registry<cudaGraphExec_t, GraphExec>;
  return all;
}

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.branch.of) return cudaStreamCaptureStatusNone;
  return stream.branch.of->is_valid() ? cudaStreamCaptureStatusActive
                                      : cudaStreamCaptureStatusInvalidated;
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return stream_call(handle, [&](Runtime&, Stream& stream) { return begin_capture(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  return stream_call(handle, [&](Runtime&, Stream& stream) {
    std::shared_ptr<Graph> made;
    const cudaError_t error = end_capture(stream, made);
    if (made) *graph = graphs().add(made);
    return error;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return stream_call(handle, [&](Runtime& runtime, Stream& stream) {
    const std::lock_guard lock(runtime.issue);
    *status = status_of(stream);
    return cudaSuccess;
  });
}

/// The graph and its nodes are not shown.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, std::size_t*) {
  return stream_call(handle, [&](Runtime& runtime, Stream& stream) {
    const std::lock_guard lock(runtime.issue);
    *status = status_of(stream);
    if (id != nullptr && stream.branch.of) *id = stream.branch.of->id();
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  *mode = exchange_mode(*mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t handle,
                                 unsigned long long) {
  return device_call([&](Runtime&) {
    const auto graph = graphs().find(handle);
    if (!graph) return cudaErrorInvalidValue;
    *executable = executables().add(std::make_shared<GraphExec>(graph->captured));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  return stream_call(stream_handle, [&](Runtime& runtime, Stream& stream) {
    const auto executable = executables().find(handle);
    if (!executable) return cudaErrorInvalidValue;
    if (const cudaError_t error = refuse_captured(stream, "cudaGraphLaunch"); error != cudaSuccess)
      return error;
    tessera::sim::count_work(tessera::sim::WorkKind::launch, "graph");
    const cudaError_t error = executable->launch(stream_handle);
    const cudaError_t sticky = runtime.device(stream.device()).sticky();
    return sticky != cudaSuccess ? sticky : error;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(
      [&](Runtime&) { return graphs().remove(graph) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call([&](Runtime&) {
    return executables().remove(executable) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
