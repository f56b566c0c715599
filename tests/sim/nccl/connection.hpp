// SPDX-License-Identifier: Apache-2.0
// How ranks are connected when they first need it, which holds the host.
#pragma once

#include <vector>

#include "operation.hpp"

namespace tessera::sim::nccl {

/// The first collective of a communicator waits on the host until all members have come to theirs,
/// and the first transfer to or from a peer until the peer has come to its end of it. Later ones
/// wait for nobody.
ncclResult_t connect(const std::vector<Operation>& operations);

}  // namespace tessera::sim::nccl
