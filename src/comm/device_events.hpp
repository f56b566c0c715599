// SPDX-License-Identifier: Apache-2.0
// CUDA events, used again and again.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <vector>

#include "compute_stream.hpp"

namespace tessera::comm {

/// Goes back to its pool with its last holder.
using Event = std::shared_ptr<CUevent_st>;

/// Whether the device has come to it. Not while a stream is captured.
inline bool has_ended(const Event& event) {
  const cudaError_t state = cudaEventQuery(event.get());
  if (state != cudaErrorNotReady) check_cuda(state, "cudaEventQuery");
  return state == cudaSuccess;
}

class EventPool : public std::enable_shared_from_this<EventPool> {
 public:
  /// Of its events; those without timing cost least.
  explicit EventPool(unsigned flags = cudaEventDisableTiming) : flags_(flags) {}
  ~EventPool() {
    for (cudaEvent_t event : free_) cudaEventDestroy(event);
  }
  /// An event that marks the present end of `stream`.
  Event record(cudaStream_t stream) {
    Event event(take(), [pool = shared_from_this()](cudaEvent_t e) { pool->give(e); });
    check_cuda(cudaEventRecord(event.get(), stream), "cudaEventRecord");
    return event;
  }

 private:
  cudaEvent_t take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      cudaEvent_t event = nullptr;
      check_cuda(cudaEventCreateWithFlags(&event, flags_), "cudaEventCreateWithFlags");
      return event;
    }
    const cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  void give(cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
  }
  const unsigned flags_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

}  // namespace tessera::comm
