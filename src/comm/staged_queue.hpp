// SPDX-License-Identifier: Apache-2.0
// The operations of one communicator that pass through host memory, and the thread that moves all
// such queues of this process on. Device files only.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "staged_operation.hpp"

namespace tessera::comm {

/// Runs commands and drives queues; nothing in it waits for a peer or for the device. All queues of
/// a process share it. It lives as long as one of them.
class StagingThread {
 public:
  enum class Progress { idle, waits, moves };
  /// Does what can be done now.
  using Step = std::function<Progress()>;

  /// That of this process, on the caller's device.
  static std::shared_ptr<StagingThread> get();
  explicit StagingThread(int device);
  ~StagingThread();
  StagingThread(const StagingThread&) = delete;

  /// Runs `command` on the thread, soon.
  void post(std::function<void()> command);
  /// The same; returns when it has run, or throws what it threw.
  void run(const std::function<void()>& command);
  /// Takes `step` in turn with the others until it is removed. For commands.
  void add(const void* owner, Step step);
  void remove(const void* owner);

 private:
  void work();
  std::vector<std::function<void()>> take_commands(bool wait);

  std::mutex mutex_;
  std::condition_variable posted_;
  std::vector<std::function<void()>> commands_;
  bool stopping_ = false;
  std::vector<std::pair<const void*, Step>> steps_;
  std::thread thread_;
};

/// Keeps the rule that a communicator is a queue: exchanges begin in the order of their issue. At
/// most two pieces have pinned memory, so that one is copied while the other one travels.
class StagedQueue {
 public:
  /// Takes over `carrier`, whose members issue the same operations. Copies run on streams of the
  /// queue's own.
  explicit StagedQueue(std::unique_ptr<MpiCommunicator> carrier);
  /// Waits for all its operations, unless it has failed or an exception is in progress: their
  /// memory is then kept.
  ~StagedQueue();
  StagedQueue(const StagedQueue&) = delete;

  void add(std::shared_ptr<StagedOperation> operation);
  /// Ends an operation that nobody will wait for, and with it the queue, unless it has ended by
  /// itself. The current compute stream then waits for the copies that are in progress.
  void drop(const std::shared_ptr<StagedOperation>& operation);

 private:
  /// A piece on its way.
  struct Flight {
    std::shared_ptr<StagedOperation> operation;
    StagedPiece piece;
    Event on_host;  ///< when it has been copied from the device
    Request travel;
  };
  StagingThread::Progress advance();
  bool depart();
  bool travel();
  bool land();
  void fail(const std::string& why, const std::exception_ptr& error);
  void copy(const std::vector<StagedCopy>& copies, cudaStream_t stream);
  bool is_empty() const { return waiting_.empty() && copied_.empty() && travelling_.empty(); }

  std::shared_ptr<StagingThread> thread_ = StagingThread::get();
  std::unique_ptr<MpiCommunicator> carrier_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  cudaStream_t in_, out_;
  // Of the thread.
  std::deque<std::shared_ptr<StagedOperation>> waiting_;  ///< those with pieces that have not begun
  std::deque<Flight> copied_, travelling_;  ///< from the device to the host; between hosts
  std::string failure_;
};

}  // namespace tessera::comm
