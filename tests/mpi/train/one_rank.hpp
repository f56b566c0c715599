// SPDX-License-Identifier: Apache-2.0
// What one rank computes without communication: the reference of every mesh.
#pragma once

#include "mpi/train/first_step.hpp"
#include "mpi/train/gradient_case.hpp"
#include "tessera/comm/world.hpp"

namespace tessera::test {

/// `of` on one rank: the same model, data and roundings.
GradientCase alone(const GradientCase& of);

/// What `row` is compared with: computed once in each process that asks for it. Collective over
/// `world`.
const FirstStep& reference_for(comm::World& world, const GradientCase& row);

}  // namespace tessera::test
