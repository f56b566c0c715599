// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/stage_ranges.hpp"

namespace tessera::plan {

std::optional<StageRanges> stage_ranges_of(const config::JobConfig& job,
                                           const model::ModelSpec& model, int stages) {
  if (stages == 1) return StageRanges{{0, static_cast<std::int64_t>(model.cells.size())}};
  const config::Parallelism& p = job.parallelism;
  if (!p.pipeline_parallel_split_points.empty())
    return split_at(model, p.pipeline_parallel_split_points);
  if (p.module_fqns_per_model_part) return split_by_modules(model, *p.module_fqns_per_model_part);
  const std::string& how = p.pipeline_parallel_split;
  if (how == "measured") return std::nullopt;
  if (how == "layers")
    return split_by_layers(model, stages, p.pipeline_parallel_first_stage_less_layers,
                           p.pipeline_parallel_last_stage_less_layers);
  return split_balanced(model, stages, flops_of_cells(model, job.training.seq_len),
                        how == "balanced" ? Granularity::blocks : Granularity::cells);
}

}  // namespace tessera::plan
