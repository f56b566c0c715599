// Verbs that run on all ranks of a job: one configuration, one message, one exit code.
#pragma once

#include <functional>

#include "tessera/base/error.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/config/resolve.hpp"
#include "verb.hpp"

namespace tessera::app {

using RankBody = std::function<ExitCode(comm::World&, const config::Resolved&, const Args&)>;

/// Makes the World, lets rank 0 read the configuration from `args` and gives it to all, runs `body` on every rank and returns
/// its code. An Error that all ranks throw is printed once and becomes the exit code of all of them; one that others do not
/// share ends the job on all ranks with its code.
int run_on_ranks(const Args& args, const RankBody& body);

}  // namespace tessera::app
