#include "tessera/train/stage_ranges.hpp"

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

parallel::StageRanges split(const config::JobConfig& job, const model::Model& model, mesh::DeviceMesh& mesh,
                            const parallel::StageOptions& options, int stages) {
  const config::Parallelism& p = job.parallelism;
  if (!p.pipeline_parallel_split_points.empty()) return parallel::split_at(model, p.pipeline_parallel_split_points);
  if (p.module_fqns_per_model_part) return parallel::split_by_modules(model, *p.module_fqns_per_model_part);
  const std::string& how = p.pipeline_parallel_split;
  if (how == "layers")
    return parallel::split_by_layers(model, stages, p.pipeline_parallel_first_stage_less_layers,
                                     p.pipeline_parallel_last_stage_less_layers);
  const auto costs =
      how == "measured" ? measured_costs(model, mesh, options) : parallel::flops_of_cells(model, job.training.seq_len);
  return parallel::split_balanced(model, stages, costs,
                                  how == "balanced" ? parallel::Granularity::blocks : parallel::Granularity::cells);
}

}  // namespace

parallel::StageRanges stage_ranges_of(const config::JobConfig& job, const model::Model& model, mesh::DeviceMesh& mesh,
                                      int stages, const parallel::StageOptions& options) {
  if (stages == 1) return {{0, static_cast<std::int64_t>(model.cells.size())}};
  parallel::StageRanges ranges = split(job, model, mesh, options, stages);
  require(static_cast<int>(ranges.size()) == stages, ExitCode::usage,
          "the cuts make {} pipeline stages, and {} runs {}; name {} cuts, or choose another schedule", ranges.size(),
          job.parallelism.pipeline_parallel_schedule, stages, stages - 1);
  return ranges;
}

}  // namespace tessera::train
