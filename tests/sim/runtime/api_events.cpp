// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "calls.hpp"
#include "capture.hpp"
#include "issue.hpp"

using namespace tessera::cudart;

namespace {

/// body(event) on the event of this handle.
template <class Body>
cudaError_t event_call(cudaEvent_t handle, Body body) {
  return device_call([&](Runtime& runtime) {
    const auto event = runtime.events.find(handle);
    return event ? body(*event) : cudaErrorInvalidResourceHandle;
  });
}

/// The host may not ask for what a capture has recorded, nor for anything while it may not wait.
cudaError_t ask(const Record& record, const char* what) {
  return record.captured().exists ? cudaErrorCapturedEvent : unsafe_call(what);
}

cudaError_t elapsed(Event& start, Event& end, float* milliseconds) {
  const auto from = start.record(), to = end.record();
  if (!start.timed() || !end.timed() || !from || !to) return cudaErrorInvalidResourceHandle;
  if (from->captured().exists || to->captured().exists) return cudaErrorCapturedEvent;
  if (!from->is_complete() || !to->is_complete()) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(to->time() - from->time()).count();
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if ((flags & cudaEventInterprocess) != 0) return refuse("cudaEventInterprocess");
  return device_call([&](Runtime& runtime) {
    const bool timed = (flags & cudaEventDisableTiming) == 0;
    *event = runtime.events.add(std::make_shared<Event>(current_device(), timed));
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Runtime& runtime) {
    return runtime.events.remove(event) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return stream_call(stream_handle, [&](Runtime& runtime, Stream& stream) {
    const auto event = runtime.events.find(handle);
    if (!event || event->device() != stream.device()) return cudaErrorInvalidResourceHandle;
    event->set(record(stream));
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return event_call(handle, [](Event& event) {
    const auto record = event.record();
    if (!record) return cudaSuccess;
    if (const cudaError_t error = ask(*record, "cudaEventQuery"); error != cudaSuccess)
      return error;
    if (!record->is_complete()) return cudaErrorNotReady;
    const std::lock_guard lock(Runtime::get().issue);
    Runtime::get().races.host_saw(record->known());
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return event_call(handle, [](Event& event) {
    const auto record = event.record();
    if (!record) return cudaSuccess;
    if (const cudaError_t error = ask(*record, "cudaEventSynchronize"); error != cudaSuccess)
      return error;
    count_wait(record->known(), "event");
    record->wait();
    const std::lock_guard lock(Runtime::get().issue);
    Runtime::get().races.host_waited(record->known());
    return Runtime::get().device(event.device()).sticky();
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return event_call(start, [&](Event& from) {
    return event_call(end, [&](Event& to) { return elapsed(from, to, milliseconds); });
  });
}
