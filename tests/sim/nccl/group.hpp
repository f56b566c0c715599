// SPDX-License-Identifier: Apache-2.0
// Calls between ncclGroupStart and ncclGroupEnd of one thread, and how operations reach their
// streams.
#pragma once

#include <functional>
#include <memory>

#include "operation.hpp"

namespace tessera::sim::nccl {

/// Work of the host that may wait for other ranks. Its result becomes the state of `about`.
struct Job {
  std::shared_ptr<Communicator> about;
  /// jobs of one group with the same queue run one after the other, others at once
  const void* queue = nullptr;
  std::function<ncclResult_t()> work;
  bool may_run_in_background = true;  ///< where the communicator does not block
};

void group_start();
/// Launches what the outermost group holds, and returns its first error; after an error nothing is
/// launched.
ncclResult_t group_end();

/// The result of an operation's call, which the end of the group returns as well if it is an error.
/// Returns it.
ncclResult_t note_in_group(ncclResult_t result);

/// Checks the operation and launches it, now or with the group that this thread is in.
ncclResult_t submit(Operation operation);

/// Does the job here; at the end of the group that this thread is in; or, where the communicator
/// does not block, on a thread of its own (returns ncclInProgress).
ncclResult_t submit(Job job);

}  // namespace tessera::sim::nccl
