// SPDX-License-Identifier: Apache-2.0
// Commands that run on all ranks of a job: one configuration, one message, one exit code.
#pragma once

#include <functional>

#include "command.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/on_failure.hpp"

namespace tessera::app {

/// A job as all ranks agree on it.
struct AgreedJob {
  config::Resolved keys;
  plan::JobPlan plan;
};

using RankBody =
    std::function<ExitCode(comm::World&, const AgreedJob&, const Args&, const train::OnFailure&)>;

/// Appends to a job's problems what keeps it from running on this many ranks. Returns the
/// vocabulary of its data, 0 = unknown.
using FindOnRanks = std::function<std::int64_t(config::Reading&, int ranks)>;

using WorldBody = std::function<ExitCode(comm::World&, const train::OnFailure&)>;

/// Makes the World, runs `body` on every rank and returns its code. Where all ranks throw an Error
/// rank 0's is printed, and the least of their codes becomes that of all: that communication failed
/// comes after its causes. An Error that others do not share ends the job on all ranks with its
/// code.
int run_on_world(const WorldBody& body);

/// The same for a job: rank 0 reads it from `args`, checks it and gives it to all.
int run_on_ranks(const Args& args, const RankBody& body, const FindOnRanks& find);

/// Throws Error(usage) where mpirun or srun has started more than one process of `command`, which
/// uses one.
void require_one_process(const std::string& command);

}  // namespace tessera::app
