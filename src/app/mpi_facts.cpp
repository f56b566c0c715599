#include "command.hpp"
#include "tessera/comm/world.hpp"

namespace {

const tessera::app::RuntimeFactRegistration mpi{"mpi", &tessera::comm::World::library_version};

}  // namespace
