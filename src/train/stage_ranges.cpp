// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/stage_ranges.hpp"

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

parallel::StageRanges require_count(parallel::StageRanges ranges, const config::JobConfig& job,
                                    int stages) {
  require(
      static_cast<int>(ranges.size()) == stages, ExitCode::usage,
      "the cuts make {} pipeline stages, and {} runs {}; name {} cuts, or choose another schedule",
      ranges.size(), job.parallelism.pipeline_parallel_schedule, stages, stages - 1);
  return ranges;
}

}  // namespace

std::optional<parallel::StageRanges> planned_stage_ranges(const config::JobConfig& job,
                                                          const model::ModelSpec& model,
                                                          int stages) {
  if (stages == 1) return parallel::StageRanges{{0, static_cast<std::int64_t>(model.cells.size())}};
  const config::Parallelism& p = job.parallelism;
  if (!p.pipeline_parallel_split_points.empty())
    return require_count(parallel::split_at(model, p.pipeline_parallel_split_points), job, stages);
  if (p.module_fqns_per_model_part)
    return require_count(parallel::split_by_modules(model, *p.module_fqns_per_model_part), job,
                         stages);
  const std::string& how = p.pipeline_parallel_split;
  if (how == "measured") return std::nullopt;
  if (how == "layers")
    return parallel::split_by_layers(model, stages, p.pipeline_parallel_first_stage_less_layers,
                                     p.pipeline_parallel_last_stage_less_layers);
  return parallel::split_balanced(
      model, stages, parallel::flops_of_cells(model, job.training.seq_len),
      how == "balanced" ? parallel::Granularity::blocks : parallel::Granularity::cells);
}

parallel::StageRanges stage_ranges_of(const config::JobConfig& job, const model::Model& model,
                                      mesh::DeviceMesh& mesh, int stages,
                                      const parallel::StageOptions& options) {
  if (auto planned = planned_stage_ranges(job, model, stages)) return std::move(*planned);
  return parallel::split_balanced(model, stages, measured_costs(model, mesh, options),
                                  parallel::Granularity::cells);
}

}  // namespace tessera::train
