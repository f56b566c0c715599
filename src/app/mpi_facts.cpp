#include "tessera/comm/world.hpp"
#include "verb.hpp"

namespace {

const tessera::app::RuntimeFactRegistration mpi{"mpi", &tessera::comm::World::library_version};

}  // namespace
