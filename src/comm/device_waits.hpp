// SPDX-License-Identifier: Apache-2.0
// For how long streams that compute wait for a communicator's operations, measured by the device.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "device_events.hpp"

namespace tessera::comm {

/// Where a graph writes the device's clock before and after each of its waits: pinned memory of the
/// host.
class GraphTimes {
 public:
  GraphTimes() = default;
  GraphTimes(const GraphTimes&) = delete;
  ~GraphTimes();
  /// For the next wait, two numbers.
  std::uint64_t* add();
  /// The memory stays for the next graph.
  void clear() { waits_ = 0; }
  /// Of all waits, once the graph has run.
  double seconds() const;

 private:
  std::uint64_t* of(std::size_t wait) const;

  std::vector<std::uint64_t*> blocks_;
  std::size_t waits_ = 0;
};

/// Those of one communicator. Any thread may wait and ask.
class DeviceWaits {
 public:
  /// `stream` continues after `done`. Where it is captured, each launch of its graph waits. Inside
  /// of WaitsBeside, nothing is measured.
  void wait(cudaStream_t stream, cudaEvent_t done, bool captured);
  /// What was captured is not launched again.
  void forget_captured();
  /// What was captured runs again, up to `end`.
  void launched(Event end);
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
  GraphTimes captured_;
  Event launch_end_;  ///< null once the waits of the launch were taken
};

}  // namespace tessera::comm
