// SPDX-License-Identifier: Apache-2.0
// Handles that callers hold. Their memory is never freed, so that one used after its end is an
// error and no crash.
#pragma once

#include <nccl.h>

#include <memory>

#include "communicator.hpp"

namespace tessera::sim::nccl {

ncclComm_t add_handle(std::shared_ptr<Communicator> communicator);

/// The communicator behind a handle, as long as it was neither destroyed nor aborted. Throws
/// Failure(ncclInvalidArgument) otherwise.
std::shared_ptr<Communicator> find(ncclComm_t handle);

/// The same for calls that communicate: not while one that does not block is under way
/// (ncclInvalidArgument), not after ncclCommFinalize (ncclInvalidUsage), not after a failure (that
/// failure).
std::shared_ptr<Communicator> find_ready(ncclComm_t handle);

/// The handle has come to its end.
void retire(ncclComm_t handle, Life how);

}  // namespace tessera::sim::nccl
