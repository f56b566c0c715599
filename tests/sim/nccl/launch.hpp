// SPDX-License-Identifier: Apache-2.0
// How operations become tasks of streams.
#pragma once

#include <vector>

#include "operation.hpp"

namespace tessera::sim::nccl {

/// Launches the operations of one group: one task for each communicator, in the order in which the
/// group first names them, on the first of its streams there; its other streams wait before and
/// after it. Returns once all are enqueued.
ncclResult_t launch(std::vector<Operation> operations);

/// No launch is under way while it is held: for what it orders.
class LaunchLock {
 public:
  LaunchLock();
  ~LaunchLock();
  LaunchLock(const LaunchLock&) = delete;
};

}  // namespace tessera::sim::nccl
