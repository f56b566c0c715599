// SPDX-License-Identifier: Apache-2.0
// One NCCL communicator: every call of NCCL is made here, under one lock, and never blocks.
#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "mpi_call.hpp"
#include "mpi_communicator.hpp"

namespace tessera::comm {

/// The communicators are NCCL's blocking ones: with blocking = 0 NCCL 2.28 starts a thread for
/// every call. A peer that never comes holds the caller then; the call is in the log as held, so
/// the watchdog reports it. The lock lets the watchdog ask for asynchronous errors, and abort, from
/// its own thread.
class NcclHandle {
 public:
  /// Collective over the ranks of `place`, which have the same `ids`: one, or several that share
  /// the work of the meeting.
  NcclHandle(std::span<ncclUniqueId> ids, const Place& place);
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;

  /// Collective; null for a negative color. `place` is that of the new communicator.
  std::unique_ptr<NcclHandle> split(int color, int key, const Place& place);
  /// Makes one call that enqueues work, e.g. [&](ncclComm_t c) { return ncclAllReduce(..., c,
  /// stream); }.
  void enqueue(const char* call, const std::function<ncclResult_t(ncclComm_t)>& work);
  /// The same for several calls between ncclGroupStart and ncclGroupEnd.
  void enqueue_group(const std::function<ncclResult_t(ncclComm_t)>& work);
  /// Looks for an asynchronous failure: returns the message of the first one, and aborts at the
  /// next look, so that the message is reported even if an abort never returns; else "".
  std::string look();
  /// Throws Error(communication) if the communicator has failed.
  void expect_alive();
  /// Whether its end waits for what was enqueued: not after a failure, nor while an exception is on
  /// its way.
  bool flushes() const;
  /// Collective: flushes and frees the communicator, or aborts it.
  void finish();
  /// See abort_device_communicators(). The abort runs on a thread of its own, which is left alone
  /// after the deadline.
  static bool abort_all(const std::string& why,
                        std::chrono::milliseconds deadline = std::chrono::seconds(5));

 private:
  explicit NcclHandle(const Place& place);
  void check(ncclResult_t result, const char* call);
  std::string message_of(ncclResult_t result, const char* call) const;
  void set_failure(const std::string& why);
  void expect_alive_locked() const;

  std::mutex mutex_;
  /// null after its end, which may come while another thread is in a call
  std::atomic<ncclComm_t> comm_ = nullptr;
  std::atomic<bool> has_failed_ = false;
  const Place place_;    ///< NCCL keeps a pointer to its name
  std::string failure_;  ///< why it has failed; guarded by the lock of all handles
};

/// Collective over the ranks of `host`: up to `ranks_per_id` of them meet at one of them. Throws
/// Error(environment) where this rank has no GPU.
std::shared_ptr<NcclHandle> join_nccl(MpiCommunicator& host, int ranks_per_id);

}  // namespace tessera::comm
