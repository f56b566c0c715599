// SPDX-License-Identifier: Apache-2.0
// How many cores a rank may use, considering the other ranks of its node.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/comm/world.hpp"

namespace tessera::train {

/// The cores that this process may run on: bit i of the string's bytes is core i, without trailing
/// zero bytes.
std::string allowed_cores();
/// Whether such a mask has this core.
bool allows(const std::string& mask, std::size_t core);

/// Whole cores of rank `self`: of each core that its mask allows it has an equal share with every
/// other rank whose mask allows the core too. At least 1. `masks`: allowed_cores() of the ranks of
/// one node.
int share_of_cores(const std::vector<std::string>& masks, std::size_t self);

/// Cores that a line of cgroup's cpu.max grants ("150000 100000" = 1.5); nothing where it sets no
/// limit.
std::optional<double> cores_of_quota(std::string_view cpu_max);

/// Cores of this rank: its share, and at most its part of the container's quota. Collective.
int cores_of_this_rank(comm::World& world);

}  // namespace tessera::train
