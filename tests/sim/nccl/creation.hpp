// SPDX-License-Identifier: Apache-2.0
// How communicators begin and end. All functions throw Failure or std::runtime_error before they
// have waited for anyone, and return the result of what may wait.
#pragma once

#include <nccl.h>

#include <memory>
#include <span>

#include "communicator.hpp"

namespace tessera::sim::nccl {

ncclResult_t make(ncclComm_t* made, int ranks, int rank, std::span<const ncclUniqueId> ids,
                  const ncclConfig_t* config);
/// Collective, and only while the communicator has no operation under way.
ncclResult_t split(ncclComm_t handle, int color, int key, ncclComm_t* made,
                   const ncclConfig_t* config);
/// Collective: waits for this rank's operations, then for the members.
ncclResult_t finalize(ncclComm_t handle);
/// Finalizes unless that was done. A communicator that has failed is aborted.
ncclResult_t destroy(ncclComm_t handle);
/// Local: the operations of this rank end and leave their outputs as they are. Then it waits for
/// all other work of the device, as cudaFree does and NCCL with it: an operation of another
/// communicator that waits for a lost peer holds it. In a group all communicators are told to end
/// before any of them waits.
ncclResult_t abort(ncclComm_t handle);

}  // namespace tessera::sim::nccl
