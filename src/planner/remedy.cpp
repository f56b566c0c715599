// SPDX-License-Identifier: Apache-2.0
// The smallest change of a job that makes it fit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

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

/// The job with other types, which `keys` change.
struct OtherTypes {
  std::string dtype, moments;
  std::vector<std::string> keys;
};

/// Types that are smaller than the job's: of the moments, and then of the weights too.
std::vector<OtherTypes> smaller_types(const config::JobConfig& job) {
  const std::string &dtype = job.training.dtype, &moments = job.optimizer.moments_dtype;
  std::vector<OtherTypes> types;
  if (dtype == "float64") return types;
  if (moments == "float32" || (moments == "auto" && dtype == "float32"))
    types.push_back({dtype, "bfloat16", {"optimizer.moments_dtype"}});
  if (dtype == "float32" && moments == "float32")
    types.push_back({"bfloat16", "bfloat16", {"training.dtype", "optimizer.moments_dtype"}});
  else if (dtype == "float32")
    types.push_back({"bfloat16", moments, {"training.dtype"}});
  return types;
}

std::optional<Remedy> of_types(const OtherTypes& types, const config::Resolved& job, int gpus,
                               const Machine& machine, const Stack& stack) {
  config::Reading reading;
  reading.resolved = job;
  reading.resolved.job.training.dtype = types.dtype;
  reading.resolved.job.optimizer.moments_dtype = types.moments;
  for (const std::string& key : types.keys) reading.resolved.origins[key] = "tessera plan";
  const std::optional<plan::JobPlan> plan = plan::Planner().plan(reading, gpus, 0);
  if (!plan) return std::nullopt;
  const VariantSpace space(reading.resolved, *plan, machine, stack);
  std::optional<Remedy> remedy = of_space(space, machine, stack);
  if (!remedy) return std::nullopt;
  remedy->bfloat16_state = true;
  auto& changes = remedy->option.changes;
  for (const std::string& key : types.keys)
    changes.insert(changes.begin(), fmt::format("{} = \"bfloat16\"", key));
  return remedy;
}

std::optional<Remedy> of_smaller_state(const config::Resolved& job, int gpus,
                                       const Machine& machine, const Stack& stack) {
  if (!stack.bfloat16_state) return std::nullopt;
  for (const OtherTypes& types : smaller_types(job.job))
    if (auto remedy = of_types(types, job, gpus, machine, stack)) return remedy;
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
