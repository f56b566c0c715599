// SPDX-License-Identifier: Apache-2.0
// An event holds the record that cudaEventRecord made last. Who waits for it keeps the record that
// was current then.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "clock.hpp"

namespace tessera::cudart {

class Capture;

/// The end of a branch of a capture, which gets a moment only when the graph is launched. An event
/// that holds it does not keep the graph.
struct CapturedEnd {
  bool exists = false;  ///< else the record is no part of a capture
  std::weak_ptr<Capture> by = {};
  std::size_t number = 0;  ///< among the records of the capture
  Clock known = {};        ///< in the capture's own time
};

/// The end of a stream as it was once.
class Record {
 public:
  explicit Record(std::shared_ptr<const Clock> known) : known_(std::move(known)) {}
  explicit Record(CapturedEnd captured)
      : known_(std::make_shared<const Clock>()), captured_(std::move(captured)) {}

  const CapturedEnd& captured() const { return captured_; }

  /// What a waiter knows.
  const Clock& known() const { return *known_; }
  void complete();
  bool is_complete();
  /// Returns also when the process ends.
  void wait();
  /// When the stream came here.
  std::chrono::steady_clock::time_point time();

 private:
  const std::shared_ptr<const Clock> known_;
  const CapturedEnd captured_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool complete_ = false;
  std::chrono::steady_clock::time_point time_;
};

class Event {
 public:
  Event(int device, bool timed) : device_(device), timed_(timed) {}

  int device() const { return device_; }
  bool timed() const { return timed_; }
  /// Null before the first record.
  std::shared_ptr<Record> record();
  void set(std::shared_ptr<Record> record);

 private:
  const int device_;
  const bool timed_;
  std::mutex mutex_;
  std::shared_ptr<Record> record_;
};

}  // namespace tessera::cudart
