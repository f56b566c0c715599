// SPDX-License-Identifier: Apache-2.0
// Slow twins of what ranks compute together: one rank computes them for all.
#pragma once

#include <functional>
#include <vector>

#include "tessera/comm/world.hpp"

namespace tessera::test {

/// What rank 0 computes; the others sleep meanwhile. Ranks that poll would take the processor from
/// it. Collective over `world`; an exception of rank 0 is one on each rank.
std::vector<double> from_rank_0(comm::World& world,
                                const std::function<std::vector<double>()>& compute);

}  // namespace tessera::test
