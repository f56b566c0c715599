// The door to NCCL: one of nccl_communicator.cpp and without_nccl.cpp stands behind it.
#pragma once

#include <memory>
#include <string>

#include "mpi_communicator.hpp"

namespace tessera::comm {

/// Collective over `host`, whose ranks become the members; the communicator keeps it as its companion in host memory.
/// Throws Error(environment) where the build has no NCCL or the process has no device.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<MpiCommunicator> host);

}  // namespace tessera::comm
