// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/scaling.hpp"

namespace tessera::planner {
namespace {

constexpr int kMost = 64;

/// The degree that takes more or fewer ranks.
void open_degree(config::Parallelism& mesh) {
  if (mesh.data_parallel_shard_degree != -1) mesh.data_parallel_replicate_degree = -1;
}

/// As the ranks: times `up`, divided by `down`.
void scale_batch(config::Training& training, std::int64_t up, std::int64_t down) {
  if (training.global_batch_size != -1)
    training.global_batch_size = training.global_batch_size * up / down;
}

}  // namespace

Scaling scaling(const config::Resolved& job, int gpus, const Machine& machine, const Stack& stack) {
  plan::Planner planner;
  const auto plan_of = [&](const config::Resolved& resolved, int ranks) {
    config::Reading reading;
    reading.resolved = resolved;
    return planner.plan(reading, ranks, 0);
  };
  const std::optional<plan::JobPlan> own = plan_of(job, gpus);
  Scaling out;
  if (!own) return out;
  const auto add = [&](std::vector<ScalingPoint>& to, const config::Resolved& resolved, int ranks) {
    const std::optional<plan::JobPlan> plan = plan_of(resolved, ranks);
    if (plan)
      to.push_back({ranks, price(workload_of(*plan, stack), share_of(machine, ranks), stack)});
  };
  const auto at = [&](int up, int down) {
    if (gpus % down != 0) return;
    const int ranks = gpus / down * up;
    config::Resolved larger = job, same = job;
    if (up != down) open_degree(larger.job.parallelism);
    same.job.parallelism = larger.job.parallelism;
    scale_batch(larger.job.training, up, down);
    add(out.larger_batch, larger, ranks);
    same.job.training.global_batch_size = own->batch().global_batch;
    add(out.same_batch, same, ranks);
  };
  for (int down = kMost; down > 1; down /= 2) at(1, down);
  for (int up = 1; up <= kMost; up *= 2) at(up, 1);
  return out;
}

}  // namespace tessera::planner
