// SPDX-License-Identifier: Apache-2.0
// tessera train [FILE] [--section.key value ...]
#include <iostream>

#include <algorithm>

#include "ranks.hpp"
#include "rehearsal.hpp"
#include "tensor_commands.hpp"
#include "tessera/inputs/job_check.hpp"
#include "tessera/train/run.hpp"
#include "tessera/train/signals.hpp"

namespace {

using tessera::app::Args;

/// Takes `--rehearse RANKS` out of `args`; 0 where it is not there.
int take_rehearsal(Args& args) {
  const std::string flag = "--rehearse";
  const auto at = std::ranges::find_if(
      args, [&](const std::string& word) { return word == flag || word.starts_with(flag + "="); });
  if (at == args.end()) return 0;
  const bool apart = *at == flag;
  tessera::require(!apart || at + 1 != args.end(), tessera::ExitCode::usage,
                   "--rehearse needs a number of ranks");
  const int ranks = tessera::app::count_in(flag, apart ? *(at + 1) : at->substr(flag.size() + 1));
  args.erase(at, at + (apart ? 2 : 1));
  return ranks;
}

std::int64_t find_problems(tessera::config::Reading& job, int ranks) {
  using tessera::inputs::JobCheck;
  return JobCheck(JobCheck::Files::looked_at).find_problems(job, ranks);
}

int run(const Args& args) {
  if (tessera::app::asks_for_help(args)) {
    std::cout
        << "Usage: tessera train [FILE] [--section.key value ...]\n"
           "\n"
           "Trains the model that FILE (TOML) and the flags describe. Flags take precedence.\n"
           "Start it on all ranks with srun, mpirun or `tessera launch`.\n"
           "With checkpoint.enable = true, run the same command again to resume from the latest "
           "valid\n"
           "checkpoint. The mesh may differ.\n"
           "--profile writes traces of some steps for Perfetto.\n"
           "--rehearse RANKS checks the job as its start on RANKS ranks would. It prints what a "
           "step sends,\n"
           "and takes steps of each pipeline rank, here and without the others, for the memory.\n"
           "With job.device = \"cuda\" tensors have shapes alone: that needs no GPU.\n"
           "\n"
           "`tessera config keys` lists all keys.\n\n"
        << tessera::app::kExitCodes;
    return 0;
  }
  Args job = args;
  if (const int ranks = take_rehearsal(job))
    return tessera::app::rehearse_training(ranks, job, &find_problems);
  // From before MPI's start until the process ends: a run that has saved must not end as a crash.
  static const auto* signals = new tessera::train::SignalGuard;
  static_cast<void>(signals);
  return tessera::app::run_on_ranks(
      args,
      [](auto& world, const auto& job, const Args& words, const auto& failed) {
        const auto adviser = [&](const auto& place) {
          return tessera::planner::advice_for(job.keys, job.plan, place);
        };
        return tessera::train::run_training(world, job.plan, adviser, words, failed);
      },
      &find_problems);
}

const tessera::app::CommandRegistration registration{tessera::app::kTrain.name,
                                                     tessera::app::kTrain.summary, &run};

}  // namespace
