// SPDX-License-Identifier: Apache-2.0
// Memory that communicators know before it is used: allocations of ncclMemAlloc(), and the windows
// that members of a communicator make of them.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>

#include "communicator.hpp"

namespace tessera::sim::nccl {

/// These four throw Failure for broken rules, and return what the call of NCCL returns.
ncclResult_t allocate_memory(void** data, std::size_t bytes);
/// Waits for all devices of the process, as cudaFree() does.
ncclResult_t free_memory(void* data);
/// Collective: all members give as many bytes.
ncclResult_t register_window(ncclComm_t comm, void* data, std::size_t bytes, ncclWindow_t* made,
                             int flags);
/// For this member alone, which has no operation under way.
ncclResult_t deregister_window(ncclComm_t comm, ncclWindow_t window);

/// Throws Failure where it still has windows: they would be lost, with their memory.
void expect_no_windows(const Communicator& communicator);
/// An aborted communicator has none.
void forget_windows(const Communicator& communicator);

/// Bytes from the beginning of the window of this communicator in which all of the buffer is; -1:
/// it is in none.
std::int64_t offset_in_window(const Communicator& communicator, const void* data,
                              std::size_t bytes);

}  // namespace tessera::sim::nccl
