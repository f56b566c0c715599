// SPDX-License-Identifier: Apache-2.0
// The smallest change of a job that makes it fit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "each_variant.hpp"
#include "step_bound.hpp"
#include "tessera/planner/search.hpp"

namespace tessera::planner {
namespace {

constexpr int kMostGpus = 1 << 20;

bool fits_as(const VariantSpace& space, const Variant& variant, const Machine& machine,
             const Stack& stack) {
  if (!space.legal(variant)) return false;
  const Workload work = space.workload(variant);
  return may_fit(least_bytes(work, stack), machine) && fits(memory_of(work, stack), machine);
}

/// Does any variant fit? Tries those that spare most.
bool any_fits(const VariantSpace& space, const Machine& machine, const Stack& stack) {
  Variant lean = space.own();
  lean[Knob::microbatch] = 1;
  lean[Knob::replicate] = 1;
  lean[Knob::recompute] = space.most_recomputed();
  bool found = false;
  constexpr std::array kRest{Knob::tp,      Knob::cp,         Knob::ep,
                             Knob::etp,     Knob::async_tp,   Knob::pp,
                             Knob::reshard, Knob::accumulate, Knob::schedule};
  each_variant(space, kRest, lean, [&](const Variant& variant) {
    found = found || fits_as(space, variant, machine, stack);
  });
  return found;
}

/// The fastest variant that fits with `count` knobs turned.
std::optional<Option> fastest(const VariantSpace& space, int count, const Machine& machine,
                              const Stack& stack) {
  std::optional<Option> best;
  each_turned(space, kEachKnob, count, space.own(), [&](const Variant& variant) {
    if (!fits_as(space, variant, machine, stack)) return;
    Option option{variant, {}, {}, price(space.workload(variant), machine, stack)};
    if (best && best->price.step_seconds <= option.price.step_seconds) return;
    std::optional<ChangedJob> job = space.job(variant);
    if (!job) return;
    option.changes = std::move(job->changes);
    option.job = std::move(job->job);
    best = std::move(option);
  });
  return best;
}

std::optional<Remedy> of_space(const VariantSpace& space, const Machine& machine,
                               const Stack& stack) {
  if (!any_fits(space, machine, stack)) return std::nullopt;
  for (int count = 0; count <= static_cast<int>(kKnobs); ++count)
    if (std::optional<Option> option = fastest(space, count, machine, stack))
      return Remedy{.gpus = space.own_work().gpus, .turned = count, .option = std::move(*option)};
  return std::nullopt;
}

/// The job with moments in bfloat16, or with weights too: the first of these that fits.
std::optional<Remedy> of_smaller_state(const config::Resolved& job, int gpus,
                                       const Machine& machine, const Stack& stack) {
  if (job.job.training.dtype != "float32") return std::nullopt;
  plan::Planner planner;
  config::Reading reading;
  reading.resolved = job;
  config::JobConfig& changed = reading.resolved.job;
  for (const auto& [key, type] : {std::pair<const char*, std::string*>{
                                      "optimizer.moments_dtype", &changed.optimizer.moments_dtype},
                                  {"training.dtype", &changed.training.dtype}}) {
    changed.optimizer.moments_dtype = job.job.optimizer.moments_dtype;
    *type = "bfloat16";
    reading.resolved.origins[key] = "tessera plan";
    const std::optional<plan::JobPlan> plan = planner.plan(reading, gpus, 0);
    if (!plan) continue;
    const VariantSpace space(reading.resolved, *plan, machine, stack);
    std::optional<Remedy> remedy = of_space(space, machine, stack);
    if (!remedy) continue;
    remedy->bfloat16_state = true;
    auto& changes = remedy->option.changes;
    changes.insert(changes.begin(), fmt::format("{} = \"bfloat16\"", key));
    return remedy;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Remedy> smallest_remedy(const config::Resolved& job, const VariantSpace& space,
                                      const Machine& machine, const Stack& stack) {
  if (std::optional<Remedy> remedy = of_space(space, machine, stack)) return remedy;
  if (auto remedy = of_smaller_state(job, space.own_work().gpus, machine, stack)) return remedy;
  plan::Planner planner;
  // The job's own degree is for its own number of GPUs.
  config::Resolved open = job;
  open.job.parallelism.data_parallel_shard_degree = -1;
  open.origins["parallelism.data_parallel_shard_degree"] = "tessera plan";
  for (std::int64_t gpus = 2 * std::int64_t{space.own_work().gpus}; gpus <= kMostGpus; gpus *= 2) {
    config::Reading reading;
    reading.resolved = open;
    const std::optional<plan::JobPlan> plan = planner.plan(reading, static_cast<int>(gpus), 0);
    if (!plan) continue;
    const VariantSpace more(open, *plan, machine, stack);
    if (std::optional<Remedy> remedy = of_space(more, machine, stack)) {
      remedy->more_gpus = true;
      if (job.job.parallelism.data_parallel_shard_degree != -1)
        remedy->option.changes.insert(remedy->option.changes.begin(),
                                      "parallelism.data_parallel_shard_degree = -1");
      return remedy;
    }
  }
  return std::nullopt;
}

}  // namespace tessera::planner
