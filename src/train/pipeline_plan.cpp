// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/pipeline_plan.hpp"

#include "tessera/base/error.hpp"
#include "tessera/schedule/csv.hpp"
#include "tessera/schedule/schedule.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

using schedule::StageMap;
using schedule::StagesPerRank;
using schedule::Traits;

/// Stages that the cuts make; nothing where these follow from the schedule.
std::optional<int> stages_of_cuts(const config::Parallelism& p, const model::ModelSpec& model) {
  if (!p.pipeline_parallel_split_points.empty())
    return static_cast<int>(p.pipeline_parallel_split_points.size()) + 1;
  if (p.module_fqns_per_model_part) return static_cast<int>(p.module_fqns_per_model_part->size());
  if (!p.pipeline_parallel_layers_per_stage) return std::nullopt;
  // TorchTitan: as many stages as layers, embedding and output fill.
  const std::int64_t share = *p.pipeline_parallel_layers_per_stage;
  const std::int64_t total = model.dimensions.layers + p.pipeline_parallel_first_stage_less_layers +
                             p.pipeline_parallel_last_stage_less_layers;
  return static_cast<int>((total + share - 1) / share);
}

const Traits& schedule_of(const config::Parallelism& p) {
  const Traits* schedule = schedule::find_traits(p.pipeline_parallel_schedule);
  TESSERA_EXPECT(schedule, "no schedule is called {}", p.pipeline_parallel_schedule);
  return *schedule;
}

/// With the stages that the schedule wants on each of `ranks` ranks.
StageMap map_of(const config::Parallelism& p, const model::ModelSpec& model, const Traits& schedule,
                int ranks) {
  const int usual = schedule.usual_stages(),
            stages = stages_of_cuts(p, model).value_or(usual * ranks);
  require(schedule::fits(schedule.stages, stages, ranks), ExitCode::usage,
          "{} pipeline stages on pipeline_parallel_degree {}: {} runs {} stage(s) on each rank{}; "
          "name {} cuts, or choose "
          "another pipeline_parallel_layers_per_stage, degree or schedule",
          stages, ranks, schedule.name, usual,
          schedule.stages == StagesPerRank::several ? " or a multiple of that" : "",
          usual * ranks - 1);
  const std::string& map = p.pipeline_parallel_stage_map;
  if (map != "default")
    return StageMap::parse(map, stages, ranks, "parallelism.pipeline_parallel_stage_map");
  return schedule.usual_map(ranks, stages / ranks);
}

schedule::Table table_in_file(const config::Parallelism& p, const model::ModelSpec& model,
                              int ranks, int microbatches) {
  const std::string& file = p.pipeline_parallel_schedule_csv;
  schedule::Table table = schedule::read_csv(file);
  require(table.map.ranks() == ranks, ExitCode::usage,
          "{} has {} rows, one for each rank, and pipeline_parallel_degree is {}", file,
          table.map.ranks(), ranks);
  require(
      table.microbatches == microbatches, ExitCode::usage,
      "{} is for {} microbatches, and local_batch_size / pipeline_parallel_microbatch_size is {}",
      file, table.microbatches, microbatches);
  const int stages = stages_of_cuts(p, model).value_or(table.map.stages());
  require(table.map.stages() == stages, ExitCode::usage, "{} has {} stages, and the cuts make {}",
          file, table.map.stages(), stages);
  return table;
}

schedule::Table table_of(const config::Parallelism& p, const model::ModelSpec& model, int ranks,
                         int microbatches) {
  if (ranks == 1)
    return {compute_orders(schedule::Kind::one_f_one_b, StageMap::loop(1), microbatches),
            StageMap::loop(1), microbatches};
  if (!p.pipeline_parallel_schedule_csv.empty())
    return table_in_file(p, model, ranks, microbatches);
  const Traits& schedule = schedule_of(p);
  const StageMap map = map_of(p, model, schedule, ranks);
  return {compute_orders(schedule.kind, map, microbatches), map, microbatches};
}

}  // namespace

void check_microbatches(const config::JobConfig& job, const mesh::Layout& layout,
                        const BatchPlan& plan) {
  const config::Parallelism& p = job.parallelism;
  const int ranks = layout.degree(mesh::Axis::pp);
  if (ranks == 1 || !p.pipeline_parallel_schedule_csv.empty()) return;
  const Traits& schedule = schedule_of(p);
  const int least = schedule.least_microbatches(ranks);
  require(plan.microbatches >= least, ExitCode::usage,
          "{} microbatches are fewer than {} needs on {} pipeline ranks; choose local_batch_size "
          ">= {} x "
          "pipeline_parallel_microbatch_size (now {} and {}), or fewer ranks",
          plan.microbatches, schedule.name, ranks, least, job.training.local_batch_size,
          plan.microbatch_rows);
}

PipelinePlan pipeline_plan_of(const config::JobConfig& job, const model::ModelSpec& model,
                              const mesh::Layout& layout, const BatchPlan& plan) {
  const auto table =
      table_of(job.parallelism, model, layout.degree(mesh::Axis::pp), plan.microbatches);
  PipelinePlan result{table.map, with_transfers(table.computations, table.map)};
  const std::string fault = find_fault(result.lists, result.map, plan.microbatches);
  require(fault.empty(), ExitCode::usage, "the pipeline schedule {} is wrong: {}",
          job.parallelism.pipeline_parallel_schedule_csv.empty()
              ? job.parallelism.pipeline_parallel_schedule
              : job.parallelism.pipeline_parallel_schedule_csv,
          fault);
  return result;
}

void check_job_fits(const config::JobConfig& job, const model::ModelSpec& model,
                    const mesh::Layout& layout, const BatchPlan& plan) {
  check_model_fits(model, layout, plan, !job.parallelism.disable_sequence_parallel);
  check_microbatches(job, layout, plan);
  pipeline_plan_of(job, model, layout, plan);
}

}  // namespace tessera::train
