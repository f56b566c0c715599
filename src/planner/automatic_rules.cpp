// SPDX-License-Identifier: Apache-2.0
#include "automatic_rules.hpp"

#include <algorithm>

#include "tessera/config/key_names.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::planner {

using namespace config::key_names;

AutomaticRules::AutomaticRules(config::Reading& job, int ranks) : job_(job), ranks_(ranks) {
  for (const config::Option* option : config::left_to_planner(job.resolved.job))
    open_.push_back(option->key);
}

bool AutomaticRules::obeyed() {
  if (ranks_ <= 0)
    wrong({first()}, "{} = \"auto\" is chosen for a number of ranks; give it (--ranks, --gpus)",
          first());
  degrees();
  batch();
  if (!first_of({kPp}).empty() &&
      job_.resolved.job.parallelism.pipeline_parallel_split == "measured")
    wrong({kSplit, kPp},
          "pipeline_parallel_split = \"measured\" is decided when a run starts, and {} = \"auto\" "
          "before; set one of them",
          kPp);
  return job_.problems.empty();
}

void AutomaticRules::degrees() {
  const config::Parallelism& p = job_.resolved.job.parallelism;
  const std::string_view mesh = first_of({kPp, kTp, kCp, kReplicate});
  if (mesh.empty()) return;
  if (p.data_parallel_shard_degree != -1)
    wrong({kShard, mesh},
          "{} = \"auto\" needs data_parallel_shard_degree = -1, the ranks that are left, not {}",
          mesh, p.data_parallel_shard_degree);
  for (const auto& [key, degree] : {std::pair{kPp, p.pipeline_parallel_degree},
                                    {kTp, p.tensor_parallel_degree},
                                    {kCp, p.context_parallel_degree},
                                    {kReplicate, p.data_parallel_replicate_degree}})
    if (degree == -1)
      wrong({key, mesh},
            "{} = \"auto\" gives the ranks that are left to data_parallel_shard_degree; set {} to "
            "a number",
            mesh, key);
}

void AutomaticRules::batch() {
  const std::string_view key = first_of({kLocal, kPp, kTp, kCp});
  if (!key.empty() && job_.resolved.job.training.global_batch_size == -1)
    wrong({key, kBatch},
          "{} = \"auto\" must not change the sequences of a step; set training.global_batch_size",
          key);
}

std::string_view AutomaticRules::first_of(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys)
    if (std::ranges::find(open_, key) != open_.end()) return key;
  return {};
}

}  // namespace tessera::planner
