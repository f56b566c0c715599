// SPDX-License-Identifier: Apache-2.0
// tessera train [FILE] [--section.key value ...]
#include <iostream>

#include "ranks.hpp"
#include "tensor_commands.hpp"
#include "tessera/inputs/job_check.hpp"
#include "tessera/train/run.hpp"
#include "tessera/train/signals.hpp"

namespace {

using tessera::app::Args;

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
           "\n"
           "`tessera config keys` lists all keys.\n\n"
        << tessera::app::kExitCodes;
    return 0;
  }
  // From before MPI's start until the process ends: a run that has saved must not end as a crash.
  static const auto* signals = new tessera::train::SignalGuard;
  static_cast<void>(signals);
  return tessera::app::run_on_ranks(
      args,
      [](auto& world, const auto& plan, const Args& words, const auto& failed) {
        return tessera::train::run_training(world, plan, words, failed);
      },
      [](tessera::config::Reading& job, int ranks) {
        using tessera::inputs::JobCheck;
        return JobCheck(JobCheck::Files::looked_at).find_problems(job, ranks);
      });
}

const tessera::app::CommandRegistration registration{tessera::app::kTrain.name,
                                                     tessera::app::kTrain.summary, &run};

}  // namespace
