// SPDX-License-Identifier: Apache-2.0
// A stream: tasks that run one after another, on a thread that starts with the first one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "races.hpp"
#include "sim/sim.hpp"

namespace tessera::cudart {

class Capture;

struct Task {
  std::string what;
  sim::Work work;
  bool always = false;  ///< events and waits: run undelayed, and after an error, too
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(int device, std::uint64_t number, int priority);
  Stream(const Stream&) = delete;

  int device() const { return device_; }
  int priority() const { return priority_; }
  const std::string& name() const { return time.name; }
  bool is_default() const { return number_ == 0; }

  void push(Task task);
  /// Holds the thread until all tasks pushed so far are done.
  void wait();
  bool idle();
  /// Whether this thread runs a task of this stream now; what it issues then runs where it stands.
  bool is_own_thread() const;
  /// Ends the thread after the last task.
  void close();
  /// When the process ends and no task starts any more: holds the thread until none runs, up to a
  /// deadline.
  void stop(std::chrono::steady_clock::time_point deadline);

  /// The number of the stream whose task this thread runs, in order of creation; 0: none.
  static std::uint64_t own_number();

  StreamTime time;  ///< guarded by the issue lock
  /// What is given to the stream becomes a part of this graph instead; guarded by the issue lock.
  struct Branch {
    std::shared_ptr<Capture> of;  ///< null: none
    std::size_t number = 0;
  } branch;

  /// The stream's next task is what this thread does until this object goes.
  class Turn {
   public:
    /// Takes a place in the queue.
    explicit Turn(Stream& stream);
    Turn(const Turn&) = delete;
    ~Turn();
    /// Holds the thread until all earlier tasks are done.
    void wait(const char* what);

   private:
    Stream& stream_;
    Stream* const before_;
    const char* const task_before_;
    const bool nested_;     ///< in a task of the same stream
    bool at_once_ = false;  ///< the stream was idle
    std::shared_ptr<std::promise<void>> reached_, over_;
  };

 private:
  bool try_begin();
  void end();
  void run();
  bool next(Task& task);
  void execute(Task& task);

  const int device_, priority_;
  const std::uint64_t number_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  std::uint64_t pushed_ = 0, done_ = 0;
  bool running_ = false, started_ = false, closed_ = false;
};

}  // namespace tessera::cudart
