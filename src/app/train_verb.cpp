// tessera train [FILE] [--section.key value ...]
#include <iostream>

#include "ranks.hpp"
#include "tessera/train/run.hpp"
#include "tessera/train/signals.hpp"

namespace {

using tessera::app::Args;

int run(const Args& args) {
  if (args == Args{"--help"}) {
    std::cout
        << "Usage: tessera train [FILE] [--section.key value ...]\n"
           "Trains as FILE (TOML) and the flags say, on all ranks of the job: start it with srun, mpirun or `tessera "
           "launch`.\n"
           "The same command line run again goes on from the newest valid checkpoint (checkpoint.enable = true).\n"
           "Keys: `tessera config keys`. Exit codes: `man tessera`.\n";
    return 0;
  }
  // From before MPI's start until the process is gone: what is safe is not to end as a crash.
  static const auto* signals = new tessera::train::SignalGuard;
  static_cast<void>(signals);
  return tessera::app::run_on_ranks(args, [](auto& world, const auto& resolved, const Args& words) {
    return tessera::train::run_training(world, resolved, words);
  });
}

const tessera::app::VerbRegistration registration{"train", "train a model on all ranks of the job", &run};

}  // namespace
