// SPDX-License-Identifier: Apache-2.0
// Silent corruption: replicas of a parameter that should be equal and are not.
#pragma once

#include <string>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/stages.hpp"

namespace tessera::parallel {

/// Compares hashes of the masters' bits over dp_replicate; one word a group travels. Empty if all
/// agree, or there are no replicas; else, on every rank alike, which unit's parameters differ on
/// which rank: the one that differs from a majority, or all of them where there is none. Collective
/// over the mesh.
std::string find_replica_fault(Stages& stages, mesh::DeviceMesh& mesh);

}  // namespace tessera::parallel
