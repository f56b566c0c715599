// SPDX-License-Identifier: Apache-2.0
// Calls of the host that all members of a communicator make together.
#pragma once

#include <functional>

#include "communicator.hpp"

namespace tessera::sim::nccl {

/// The result of work that waits for other ranks, which may find that a rule is broken.
ncclResult_t result_of(const Communicator& communicator, const std::function<void()>& work);

/// Meets the members in one call of the host, which must be the same for all. Throws Failure.
void meet_in(Communicator& c, const HostCall& call);

}  // namespace tessera::sim::nccl
