// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/search.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/plan/job_plan.hpp"

namespace tessera::planner {
namespace {

constexpr std::size_t kShown = 5;

/// Sets keys of a job, and notes those that become different.
class Changes {
 public:
  explicit Changes(Option& option) : option_(option) {}

  template <typename Value>
  void set(const char* key, Value& at, const Value& value) {
    if (at == value) return;
    at = value;
    if constexpr (std::is_same_v<Value, std::string>)
      option_.changes.push_back(fmt::format("{} = \"{}\"", key, value));
    else
      option_.changes.push_back(fmt::format("{} = {}", key, value));
    option_.job.origins[key] = "tessera plan";
  }

 private:
  Option& option_;
};

std::vector<Variant> pipelines(int tp, int pp) {
  std::vector<Variant> out;
  for (const char* schedule : {"1F1B", "Interleaved1F1B", "ZBVZeroBubble"}) {
    if (pp == 1 && !out.empty()) break;
    for (const char* recompute : {"none", "selective", "full"})
      for (const std::int64_t microbatch : {1, 2, 4})
        for (const bool async_tp : {false, true})
          if (tp > 1 || !async_tp)
            out.push_back({tp, pp, schedule, recompute, microbatch, async_tp});
  }
  return out;
}

std::vector<Variant> variants(int gpus, int domain) {
  std::vector<Variant> out;
  for (int tp = 1; tp <= std::min(domain, 8); tp *= 2)
    for (int pp = 1; pp <= 16; pp *= 2) {
      if (gpus % (tp * pp) != 0) continue;
      const std::vector<Variant> more = pipelines(tp, pp);
      out.insert(out.end(), more.begin(), more.end());
    }
  return out;
}

}  // namespace

std::optional<Option> changed(const config::Resolved& job, const Variant& variant, int ranks,
                              std::int64_t sequences) {
  Option out;
  out.job = job;
  Changes changes(out);
  config::JobConfig& to = out.job.job;
  config::Parallelism& mesh = to.parallelism;
  const int rest = variant.tp * variant.pp * mesh.context_parallel_degree;
  if (ranks % rest != 0) return std::nullopt;
  const std::int64_t data = ranks / rest;
  if (sequences % (data * variant.microbatch) != 0) return std::nullopt;
  if (mesh.tensor_parallel_degree * mesh.pipeline_parallel_degree != variant.tp * variant.pp)
    changes.set("parallelism.data_parallel_shard_degree", mesh.data_parallel_shard_degree, -1);
  changes.set("parallelism.tensor_parallel_degree", mesh.tensor_parallel_degree, variant.tp);
  changes.set("parallelism.pipeline_parallel_degree", mesh.pipeline_parallel_degree, variant.pp);
  changes.set("parallelism.enable_async_tensor_parallel", mesh.enable_async_tensor_parallel,
              variant.async_tp);
  changes.set("activation_checkpoint.mode", to.activation_checkpoint.mode, variant.recompute);
  const std::int64_t local = variant.pp > 1 ? sequences / data : variant.microbatch;
  if (variant.pp > 1) {
    changes.set("parallelism.pipeline_parallel_schedule", mesh.pipeline_parallel_schedule,
                variant.schedule);
    changes.set("parallelism.pipeline_parallel_microbatch_size",
                mesh.pipeline_parallel_microbatch_size, variant.microbatch);
  }
  changes.set("training.local_batch_size", to.training.local_batch_size, local);
  if (to.training.global_batch_size != -1 || local * data != sequences)
    changes.set("training.global_batch_size", to.training.global_batch_size, sequences);
  return out;
}

SearchResult search(const config::Resolved& job, const Workload& own, const Machine& machine,
                    const Stack& stack) {
  SearchResult out;
  plan::Planner planner;
  const auto sequences =
      static_cast<std::int64_t>(own.step_tokens() / static_cast<double>(own.seq) + 0.5);
  std::vector<Option> options;
  for (const Variant& variant : variants(own.gpus, machine.nvlink_domain)) {
    std::optional<Option> option = changed(job, variant, own.gpus, sequences);
    if (!option) continue;
    config::Reading reading;
    reading.resolved = option->job;
    const std::optional<plan::JobPlan> plan = planner.plan(reading, own.gpus, 0);
    if (!plan) continue;
    ++out.legal;
    const Workload work = workload_of(*plan, stack);
    if (!fits(memory_of(work, stack), machine)) continue;
    option->price = price(work, machine, stack);
    options.push_back(std::move(*option));
  }
  out.fitting = static_cast<int>(options.size());
  std::ranges::stable_sort(options, {}, [](const Option& one) { return one.price.step_seconds; });
  const auto smallest =
      std::ranges::min_element(options, {}, [](const Option& one) { return one.changes.size(); });
  if (smallest != options.end()) out.smallest = *smallest;
  options.resize(std::min(options.size(), kShown));
  out.best = std::move(options);
  return out;
}

}  // namespace tessera::planner
