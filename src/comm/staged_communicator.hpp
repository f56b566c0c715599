// SPDX-License-Identifier: Apache-2.0
// The entry to device memory over MPI, implemented by staged_communicator.cpp or
// without_device.cpp.
#pragma once

#include <memory>

#include "mpi_communicator.hpp"

namespace tessera::comm {

/// Collective over `host`, whose ranks become the members and whose rules apply; the communicator
/// keeps it as its companion in host memory. Throws Error(environment) in a build without CUDA, or
/// where the process has no device.
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<MpiCommunicator> host);

}  // namespace tessera::comm
