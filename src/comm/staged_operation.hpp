// SPDX-License-Identifier: Apache-2.0
// An operation on device memory that passes through host memory: what its caller, its queue and its
// request share. Device files only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "call_log.hpp"
#include "device_events.hpp"
#include "staged_plan.hpp"

namespace tessera::comm {

/// From its issue to the moment when its last copy to the device is in a stream: `done` marks the
/// end of that copy. Thread-safe but for the members of the queue's thread.
class StagedOperation {
 public:
  StagedOperation(StagedPlan plan, const LoggedCall& logged, Event ready)
      : plan(std::move(plan)), logged(logged), ready(std::move(ready)) {}

  /// Holds the caller until the end can be waited for on a stream, or until `deadline`: false then.
  template <class Deadline>
  bool await(const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [this] { return ended_; });
  }
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
  }
  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  /// Once it has ended: the event, or throws what it failed with.
  Event result() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    return done_;
  }
  void succeed(Event done) {
    logged.done();
    end(std::move(done), nullptr);
  }
  void fail(const std::exception_ptr& error) {
    logged.failed();
    end({}, error);
  }

  // Of the queue's thread.
  const StagedPlan plan;
  LoggedCall logged;
  const Event ready;                     ///< what the caller's stream had to do at the issue
  std::int64_t begun = 0, finished = 0;  ///< pieces

 private:
  void end(Event done, const std::exception_ptr& error) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      done_ = std::move(done);
      error_ = error;
      ended_ = true;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  Event done_;
  std::exception_ptr error_;
};

}  // namespace tessera::comm
