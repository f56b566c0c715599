// SPDX-License-Identifier: Apache-2.0
// What a whole run takes: time and energy, and what saves and failures cost of the time.
#pragma once

#include <cstdint>

#include "tessera/planner/price.hpp"

namespace tessera::planner {

/// Bytes and seconds.
struct Saves {
  double bytes = 0;    ///< of a checkpoint: weights and both moments
  double cost = 0;     ///< for which training stands still
  double durable = 0;  ///< until all of it is on the file system
  double restart = 0;  ///< from a failure to the first step after it: detection, start and reading
};

/// `waits`: training stands still until the files are durable. If it does not, a copy to the host
/// overlaps a step of `step_seconds`.
Saves saves_of(const Workload& work, const Machine& machine, const Stack& stack, bool waits,
               double step_seconds);

/// Between two saves of a run that decides itself: Young's interval in whole steps, and never
/// sooner than the last save is durable.
std::int64_t steps_between_saves(const Saves& saves, double step_seconds, double between_failures);

/// Share of a run's time in which it makes progress that is not lost, with `work` seconds of steps
/// between two saves. Failures have no memory (J. T. Daly, "A higher order estimate of the optimum
/// checkpoint interval for restart dumps", FGCS 22, 2006, equation 20); one before a save is
/// durable loses the work since the save before it.
double goodput(const Saves& saves, double work, double between_failures);

struct RunCost {
  double seconds = 0, gpu_hours = 0;
  double joules = 0;        ///< at the rated power; 0: unknown
  bool with_nodes = false;  ///< of GPUs and their nodes; else of GPUs alone
};
RunCost run_cost(const Workload& work, const Price& price, const Machine& machine, double tokens,
                 double goodput);

}  // namespace tessera::planner
