// SPDX-License-Identifier: Apache-2.0
// The entry to NCCL, implemented by nccl_communicator.cpp or without_nccl.cpp.
#pragma once

#include <memory>
#include <string>

#include "mpi_communicator.hpp"

namespace tessera::comm {

/// NCCL's members meet at the rank that made their id. One rank that serves thousands takes minutes
/// for it, and its node may refuse so many connections.
inline constexpr int ranks_per_nccl_id = 256;

/// Collective over `host`, whose ranks become the members; the communicator keeps it as its
/// companion in host memory. Throws Error(environment) where the build has no NCCL or the process
/// has no device.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<MpiCommunicator> host,
                                                     int ranks_per_id = ranks_per_nccl_id);

}  // namespace tessera::comm
