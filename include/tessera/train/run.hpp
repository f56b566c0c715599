// SPDX-License-Identifier: Apache-2.0
// A training run from its plan to its exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/planner/run_advice.hpp"
#include "tessera/train/on_failure.hpp"

namespace tessera::train {

/// What the planner tells of the job at this place. Called on rank 0, before there are weights.
using Adviser = std::function<planner::RunAdvice(const planner::RunPlace&)>;

/// Trains as `plan` says, on all ranks of `world`, and returns what the process should end
/// with: `done`, or after a signal `requeue` (saved), `interrupted` or `terminated` (nothing could
/// be saved). Rank 0 prints to standard output. Throws Error, on all ranks alike wherever the cause
/// lets itself be agreed on, after a call of `failed`.
ExitCode run_training(comm::World& world, const plan::JobPlan& plan, const Adviser& adviser,
                      const std::vector<std::string>& command_line, const OnFailure& failed);

}  // namespace tessera::train
