// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/goodput.hpp"

#include <algorithm>
#include <cmath>

#include "physics.hpp"
#include "tessera/plan/failures.hpp"

namespace tessera::planner {

Saves saves_of(const Workload& work, const Machine& machine, const Stack& stack, bool waits,
               double step_seconds) {
  Saves out;
  const double state = work.distributed_optimizer ? stack.optimizer_bytes
                                                  : work.master_bytes + 2 * work.moment_bytes;
  out.bytes = state * work.model.params();
  const double transfer = out.bytes / work.gpus / machine.storage_bytes_per_second;
  const double copy = out.bytes / work.gpus / machine.host_bytes_per_second;
  out.cost = waits ? transfer : std::max(0.0, copy - step_seconds);
  out.durable = transfer;
  out.restart = physics::kDetectionSeconds + transfer;
  return out;
}

std::int64_t steps_between_saves(const Saves& saves, double step_seconds, double between_failures) {
  const double interval =
      std::max(plan::young_interval(saves.cost, between_failures), saves.durable);
  return std::max<std::int64_t>(1, std::llround(std::ceil(interval / step_seconds)));
}

double goodput(const Saves& saves, double work, double between_failures) {
  const double mean = between_failures;
  const double after_failure = saves.restart + saves.durable - saves.cost;
  return work / (mean * std::exp(after_failure / mean) * std::expm1((work + saves.cost) / mean));
}

RunCost run_cost(const Workload& work, const Price& price, const Machine& machine, double tokens,
                 double goodput) {
  RunCost out;
  out.seconds = tokens / (price.tokens_per_second_per_gpu * work.gpus) / goodput;
  out.gpu_hours = out.seconds / 3600 * work.gpus;
  out.with_nodes = machine.node_watts > 0;
  out.joules = out.seconds * work.gpus * (out.with_nodes ? machine.node_watts : machine.watts);
  return out;
}

}  // namespace tessera::planner
