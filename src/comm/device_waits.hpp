// SPDX-License-Identifier: Apache-2.0
// For how long streams that compute wait for a communicator's operations, measured by the device.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device_events.hpp"

namespace tessera::comm {

/// Those of one communicator. Any thread may wait and ask.
class DeviceWaits {
 public:
  /// `stream` continues after `done`. Where it is captured, each launch of its graph waits. Inside
  /// of WaitsBeside, nothing is measured.
  void wait(cudaStream_t stream, cudaEvent_t done, bool captured);
  /// What was captured is not launched again.
  void forget_captured();
  /// What was captured runs again.
  void launched();
  /// Seconds of the waits that have ended, and were not taken yet. Not while a stream is captured.
  /// Of several launches since the last call, the last one counts.
  double take();

 private:
  struct Wait {
    Event begin, end;
  };
  double take_ended();

  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>(cudaEventDefault);
  std::mutex mutex_;
  std::deque<Wait> waits_;  ///< oldest first
  double seconds_ = 0;      ///< of waits that have ended
  std::vector<Wait> captured_;
  bool has_run_ = false;  ///< what was captured, since its waits were taken
};

}  // namespace tessera::comm
