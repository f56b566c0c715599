// SPDX-License-Identifier: Apache-2.0
// Operations on a communication stream that have been issued: how callers wait for them and the
// watchdog sees them.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "call_log.hpp"
#include "compute_stream.hpp"
#include "device_events.hpp"
#include "device_waits.hpp"
#include "nccl_handle.hpp"
#include "probe.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// Completion of an operation: the stream that computes when it is waited for continues after it.
class DeviceRequest final : public Request::State {
 public:
  /// `captured`: the operation is a part of a graph, so that the host cannot ask for its end.
  DeviceRequest(std::shared_ptr<NcclHandle> nccl, std::shared_ptr<DeviceWaits> waits, Event done,
                bool captured)
      : nccl_(std::move(nccl)),
        waits_(std::move(waits)),
        done_(std::move(done)),
        captured_(captured) {}
  void wait() override {
    nccl_->expect_alive();
    waits_->wait(compute_stream(), done_.get(), captured_);
  }
  bool test() override { return !captured_ && has_ended(done_); }

 private:
  std::shared_ptr<NcclHandle> nccl_;
  std::shared_ptr<DeviceWaits> waits_;
  Event done_;
  bool captured_;
};

/// Operations that were issued and have not been seen to end, oldest first; the stream runs them in
/// this order.
class PendingOperations final : public Probe {
 public:
  explicit PendingOperations(std::shared_ptr<NcclHandle> nccl) : nccl_(std::move(nccl)) {
    check_cuda(cudaGetDevice(&device_), "cudaGetDevice");
  }
  ~PendingOperations() override { retire(); }

  void add(LoggedCall call, Event begun, Event done) {
    const std::lock_guard lock(mutex_);
    forget_ended();
    pending_.push_back({call, std::move(begun), std::move(done), false});
  }

  std::optional<Error> look() override {
    cudaSetDevice(device_);  // this thread has none of its own
    if (std::optional<Error> failure = look_at_events()) return failure;
    const std::string why = nccl_->look();
    return why.empty() ? std::nullopt : std::optional(Error(ExitCode::communication, why));
  }

 private:
  struct Pending {
    LoggedCall call;
    Event begun, done;
    bool started;
  };
  std::optional<Error> look_at_events() {
    const std::lock_guard lock(mutex_);
    forget_ended();
    if (!pending_.empty() && !pending_.front().started &&
        cudaEventQuery(pending_.front().begun.get()) == cudaSuccess) {
      pending_.front().started = true;
      pending_.front().call.waited_for();
    }
    return std::exchange(failure_, std::nullopt);
  }
  /// Where the GPU has failed, none of the operations ends.
  void forget_ended() {
    cudaError_t state = cudaSuccess;
    while (!pending_.empty() &&
           (state = cudaEventQuery(pending_.front().done.get())) == cudaSuccess) {
      pending_.front().call.done();
      pending_.pop_front();
    }
    if (state == cudaSuccess || state == cudaErrorNotReady || std::exchange(has_failed_, true))
      return;
    try {
      check_cuda(state, "cudaEventQuery");
    } catch (const Error& error) {
      failure_ = error;
    }
  }

  std::shared_ptr<NcclHandle> nccl_;
  int device_ = 0;
  std::mutex mutex_;
  std::deque<Pending> pending_;
  bool has_failed_ = false;
  std::optional<Error> failure_;  ///< which the next look() returns
};

}  // namespace tessera::comm
