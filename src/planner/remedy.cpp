// SPDX-License-Identifier: Apache-2.0
// The smallest change of a job that makes it fit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
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
  constexpr std::array kRest{Knob::tp,       Knob::cp,   Knob::ep,      Knob::etp,
                             Knob::async_tp, Knob::pp,   Knob::reshard, Knob::accumulate,
                             Knob::schedule, Knob::split};
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
    Price priced = price(space.workload(variant), machine, stack);
    Option option{variant, {}, {}, std::move(priced)};
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

/// Rows of a rank from the job's own down that a step's batch has whole numbers of on all
/// data-parallel ranks. The job's own alone where its batch follows from them.
std::vector<std::int64_t> rows_that_divide(const config::JobConfig& job, int gpus, int tp) {
  const std::int64_t own = job.training.local_batch_size, batch = job.training.global_batch_size;
  const config::Parallelism& p = job.parallelism;
  const std::int64_t cut =
      std::int64_t{p.pipeline_parallel_degree} * p.context_parallel_degree * tp;
  if (batch < 1 || cut < 1) return {own};
  const std::int64_t ranks = std::max<std::int64_t>(1, gpus / cut);
  std::vector<std::int64_t> found;
  for (std::int64_t rows = std::min(own, batch / ranks); rows >= 1; --rows)
    if (batch % (rows * ranks) == 0) found.push_back(rows);
  return found;
}

std::optional<Remedy> of_gpus(const config::Resolved& job, int gpus, plan::Planner& planner,
                              const Machine& machine, const Stack& stack) {
  const std::optional<LegalJob> there = legal_on(job, gpus, planner);
  if (!there) return std::nullopt;
  std::optional<Remedy> remedy =
      of_space(VariantSpace(there->job, there->plan, machine, stack), machine, stack);
  if (!remedy) return std::nullopt;
  remedy->other_gpus = true;
  std::vector<std::string>& changes = remedy->option.changes;
  for (const std::string& change : there->changes) {
    const std::string key = change.substr(0, change.find(" = ") + 3);
    const bool again = std::ranges::any_of(
        changes, [&](const std::string& other) { return other.starts_with(key); });
    if (!again) changes.insert(changes.begin(), change);
  }
  return remedy;
}

}  // namespace

std::optional<LegalJob> legal_on(const config::Resolved& job, int gpus, plan::Planner& planner) {
  constexpr const char* kShard = "parallelism.data_parallel_shard_degree";
  constexpr const char* kTensor = "parallelism.tensor_parallel_degree";
  constexpr const char* kRows = "training.local_batch_size";
  const config::JobConfig& own = job.job;
  for (const int factor : {1, 2, 4, 8}) {
    const int tp = own.parallelism.tensor_parallel_degree * factor;
    if (tp < 0 && factor > 1) break;
    for (const std::int64_t rows : rows_that_divide(own, gpus, tp)) {
      config::Reading reading;
      reading.resolved = job;
      std::vector<std::string> changes;
      const auto set = [&](const char* key, auto& value, std::int64_t to) {
        if (value == to) return;
        value = static_cast<std::remove_reference_t<decltype(value)>>(to);
        reading.resolved.origins[key] = "tessera plan";
        changes.push_back(fmt::format("{} = {}", key, to));
      };
      config::JobConfig& now = reading.resolved.job;
      set(kShard, now.parallelism.data_parallel_shard_degree, -1);
      set(kTensor, now.parallelism.tensor_parallel_degree, tp);
      set(kRows, now.training.local_batch_size, rows);
      if (auto plan = planner.plan(reading, gpus, 0))
        return LegalJob{std::move(reading.resolved), std::move(*plan), std::move(changes)};
    }
  }
  return std::nullopt;
}

std::optional<Remedy> smallest_remedy(const config::Resolved& job, const VariantSpace& space,
                                      const Machine& machine, const Stack& stack) {
  const int own = space.own_work().gpus;
  if (std::optional<Remedy> remedy = of_space(space, machine, stack)) return remedy;
  if (auto remedy = of_smaller_state(job, own, machine, stack)) return remedy;
  plan::Planner planner;
  for (std::int64_t gpus = 2 * std::int64_t{own}; gpus <= kMostGpus; gpus *= 2)
    if (auto remedy = of_gpus(job, static_cast<int>(gpus), planner, machine, stack)) return remedy;
  for (int gpus = own / 2; gpus >= 1; gpus /= 2)
    if (auto remedy = of_gpus(job, gpus, planner, machine, stack)) return remedy;
  return std::nullopt;
}

}  // namespace tessera::planner
