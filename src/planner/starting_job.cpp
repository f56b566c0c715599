// SPDX-License-Identifier: Apache-2.0
#include "starting_job.hpp"

#include <algorithm>
#include <array>

#include "tessera/config/key_names.hpp"

namespace tessera::planner {
namespace {

using namespace config::key_names;

struct Degrees {
  int pp, tp, cp;
  std::int64_t product() const { return std::int64_t{pp} * tp * cp; }
};

/// The smallest first.
std::vector<Degrees> meshes(const config::Parallelism& keys, const std::set<std::string_view>& open,
                            int ranks) {
  const auto values = [&](std::string_view key, int own) {
    if (!open.contains(key)) return std::vector{own};
    std::vector<int> divisors;
    for (int d = 1; d <= ranks; ++d)
      if (ranks % d == 0) divisors.push_back(d);
    return divisors;
  };
  std::vector<Degrees> out;
  for (const int pp : values(kPp, keys.pipeline_parallel_degree))
    for (const int tp : values(kTp, keys.tensor_parallel_degree))
      for (const int cp : values(kCp, keys.context_parallel_degree)) out.push_back({pp, tp, cp});
  std::erase_if(out, [&](const Degrees& mesh) { return mesh.product() > ranks; });
  std::ranges::stable_sort(out, {}, &Degrees::product);
  return out;
}

void set_others(config::JobConfig& job, const std::set<std::string_view>& open) {
  if (open.contains(kReplicate)) job.parallelism.data_parallel_replicate_degree = 1;
  if (open.contains(kEp)) job.parallelism.expert_parallel_degree = 1;
  if (open.contains(kLocal)) job.training.local_batch_size = 1;
  if (open.contains(kMicro)) job.parallelism.pipeline_parallel_microbatch_size = 1;
  if (open.contains(kMode)) job.activation_checkpoint.mode = "none";
  if (open.contains(kSplit)) job.parallelism.pipeline_parallel_split = "layers";
}

}  // namespace

std::optional<StartingJob> starting_job(const config::Reading& job,
                                        const std::set<std::string_view>& open,
                                        plan::Planner& planner, int ranks, std::int64_t vocabulary,
                                        std::vector<config::Problem>& problems) {
  for (const auto& [pp, tp, cp] : meshes(job.resolved.job.parallelism, open, ranks)) {
    config::Reading reading = job;
    config::JobConfig& to = reading.resolved.job;
    set_others(to, open);
    to.parallelism.pipeline_parallel_degree = pp;
    to.parallelism.tensor_parallel_degree = tp;
    to.parallelism.context_parallel_degree = cp;
    std::optional<plan::JobPlan> plan = planner.plan(reading, ranks, vocabulary);
    if (plan) return StartingJob{std::move(reading.resolved), std::move(*plan)};
    if (problems.empty() || reading.problems.size() < problems.size())
      problems = std::move(reading.problems);
  }
  return std::nullopt;
}

}  // namespace tessera::planner
