// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/scaling.hpp"

#include <algorithm>

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

std::optional<plan::JobPlan> plan_of(const config::Resolved& resolved, int ranks) {
  config::Reading reading;
  reading.resolved = resolved;
  return plan::Planner().plan(reading, ranks, 0);
}

/// On `up` / `down` times as many GPUs.
class Rescaled {
 public:
  Rescaled(const config::Resolved& job, int gpus, int up, int down)
      : larger_(job), gpus_(gpus % down == 0 ? gpus / down * up : 0) {
    if (up != down) open_degree(larger_.job.parallelism);
    scale_batch(larger_.job.training, up, down);
  }
  /// With as many sequences a step on each GPU; nothing where the rules of jobs do not allow it.
  std::optional<ScalingPoint> with_larger_batch(const Machine& machine, const Stack& stack) const {
    return priced(larger_, machine, stack);
  }
  std::optional<ScalingPoint> with_batch(std::int64_t sequences, const Machine& machine,
                                         const Stack& stack) const {
    config::Resolved same = larger_;
    same.job.training.global_batch_size = sequences;
    return priced(same, machine, stack);
  }

 private:
  std::optional<ScalingPoint> priced(const config::Resolved& job, const Machine& machine,
                                     const Stack& stack) const {
    const auto plan = gpus_ > 0 ? plan_of(job, gpus_) : std::nullopt;
    if (!plan) return std::nullopt;
    return ScalingPoint{gpus_, price(workload_of(*plan, stack), share_of(machine, gpus_), stack)};
  }

  config::Resolved larger_;
  int gpus_;
};

/// The largest that divides what a rank has of a batch, up to `most`.
std::int64_t local_batch(std::int64_t of_rank, std::int64_t most) {
  std::int64_t size = std::min(of_rank, most);
  while (of_rank % size != 0) --size;
  return size;
}

}  // namespace

Scaling scaling(const config::Resolved& job, int gpus, const Machine& machine, const Stack& stack) {
  const std::optional<plan::JobPlan> own = plan_of(job, gpus);
  Scaling out;
  if (!own) return out;
  const auto at = [&](int up, int down) {
    const Rescaled rescaled(job, gpus, up, down);
    if (auto point = rescaled.with_larger_batch(machine, stack))
      out.larger_batch.push_back(std::move(*point));
    if (auto point = rescaled.with_batch(own->batch().global_batch, machine, stack))
      out.same_batch.push_back(std::move(*point));
  };
  for (int down = kMost; down > 1; down /= 2) at(1, down);
  for (int up = 1; up <= kMost; up *= 2) at(up, 1);
  return out;
}

std::optional<ScalingPoint> on_fewest_gpus(const config::Resolved& job, int gpus,
                                           const Machine& machine, const Stack& stack) {
  for (int down = kMost; down > 1; down /= 2)
    if (auto point = Rescaled(job, gpus, 1, down).with_larger_batch(machine, stack);
        point && point->price.fits)
      return point;
  return std::nullopt;
}

std::optional<Price> plain_fsdp(const config::Resolved& job, int gpus, const Machine& machine,
                                const Stack& stack) {
  const std::optional<plan::JobPlan> own = plan_of(job, gpus);
  if (!own || own->batch().global_batch % gpus != 0) return std::nullopt;
  config::Resolved plain = job;
  config::Training& training = plain.job.training;
  training.global_batch_size = own->batch().global_batch;
  training.local_batch_size =
      local_batch(training.global_batch_size / gpus, own->batch().microbatch_rows);
  plain.job.parallelism = {};
  plain.job.parallelism.fsdp_reshard_after_forward = "always";
  const std::optional<plan::JobPlan> plan = plan_of(plain, gpus);
  if (!plan) return std::nullopt;
  return price(workload_of(*plan, stack), share_of(machine, gpus), stack);
}

}  // namespace tessera::planner
