// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/comm/world.hpp"

namespace {

const tessera::app::RuntimeFactRegistration mpi{"mpi", &tessera::comm::World::library_version};
const tessera::app::RuntimeFactRegistration nccl{"nccl", &tessera::comm::nccl_version};

}  // namespace
