// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/pipeline_plan.hpp"

#include "tessera/base/error.hpp"
#include "tessera/plan/stage_ranges.hpp"
#include "tessera/schedule/csv.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::plan {
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
          "{} pipeline stages do not fit {} on pipeline_parallel_degree {}: it runs {} stage(s) on "
          "each rank{}; name {} cuts, or choose another pipeline_parallel_layers_per_stage, degree "
          "or schedule",
          stages, schedule.name, ranks, usual,
          schedule.stages == StagesPerRank::several ? " or a multiple of that" : "",
          usual * ranks - 1);
  const std::string& map = p.pipeline_parallel_stage_map;
  if (map != "default")
    return StageMap::parse(map, stages, ranks, "parallelism.pipeline_parallel_stage_map");
  return schedule.usual_map(ranks, stages / ranks);
}

bool is_from_file(const config::Parallelism& p) {
  return !p.pipeline_parallel_schedule_csv.empty();
}

schedule::Table table_in_file(const config::Parallelism& p, const model::ModelSpec& model,
                              int ranks) {
  const std::string& file = p.pipeline_parallel_schedule_csv;
  schedule::Table table = schedule::read_csv(file);
  require(table.map.ranks() == ranks, ExitCode::usage,
          "{} has {} rows, one for each rank, and pipeline_parallel_degree is {}", file,
          table.map.ranks(), ranks);
  const int stages = stages_of_cuts(p, model).value_or(table.map.stages());
  require(table.map.stages() == stages, ExitCode::usage, "{} has {} stages, and the cuts make {}",
          file, table.map.stages(), stages);
  return table;
}

/// Of one round of `microbatches`.
schedule::Table table_of(const config::Parallelism& p, const StageMap& map,
                         const model::ModelSpec& model, int microbatches) {
  if (map.ranks() == 1)
    return {compute_orders(schedule::Kind::one_f_one_b, map, microbatches), map, microbatches};
  const schedule::Pairs pairs = pairs_of(p, model);
  if (!is_from_file(p))
    return {compute_orders(schedule_of(p).kind, map, microbatches, pairs), map, microbatches};
  schedule::Table table = table_in_file(p, model, map.ranks());
  require(
      table.microbatches == microbatches, ExitCode::usage,
      "{} is for {} microbatches, and local_batch_size / pipeline_parallel_microbatch_size is {}",
      p.pipeline_parallel_schedule_csv, table.microbatches, microbatches);
  if (pairs == schedule::Pairs::apart)
    table.computations = with_pairs_apart(std::move(table.computations));
  return table;
}

}  // namespace

schedule::Pairs pairs_of(const config::Parallelism& p, const model::ModelSpec& model) {
  const bool travels = p.expert_parallel_degree > 1 && !model.mixtures.empty();
  const bool wanted = travels && p.pipeline_parallel_expert_parallel_overlap;
  const bool has = p.pipeline_parallel_degree > 1 && (is_from_file(p) || schedule_of(p).pairs);
  return wanted && has ? schedule::Pairs::together : schedule::Pairs::apart;
}

schedule::StageMap stage_map_of(const config::Parallelism& p, const model::ModelSpec& model,
                                int ranks) {
  if (ranks == 1) return StageMap::loop(1);
  return is_from_file(p) ? table_in_file(p, model, ranks).map
                         : map_of(p, model, schedule_of(p), ranks);
}

void check_microbatches(const config::JobConfig& job, int ranks, const BatchPlan& batch) {
  const config::Parallelism& p = job.parallelism;
  if (ranks == 1 || is_from_file(p)) return;
  const Traits& schedule = schedule_of(p);
  const int least = schedule.least_microbatches(ranks);
  require(
      batch.microbatches >= least, ExitCode::usage,
      "{} microbatch{} fewer than {} needs on {} pipeline ranks, which is {}; choose smaller "
      "microbatches (pipeline_parallel_microbatch_size, now {}), a larger global_batch_size, or "
      "fewer ranks",
      batch.microbatches, batch.microbatches == 1 ? " is" : "es are", schedule.name, ranks, least,
      batch.microbatch_rows);
  require(schedule.fills_rounds(batch.microbatches, ranks), ExitCode::usage,
          "{} needs a number of microbatches ({}) that fills equal rounds of at least "
          "pipeline_parallel_degree {}",
          schedule.name, batch.microbatches, ranks);
}

PipelinePlan pipeline_plan_of(const config::JobConfig& job, const model::ModelSpec& model,
                              const schedule::StageMap& map, const BatchPlan& batch) {
  const config::Parallelism& p = job.parallelism;
  const schedule::Table table = table_of(p, map, model, batch.microbatches);
  PipelinePlan plan;
  plan.name = is_from_file(p) ? p.pipeline_parallel_schedule_csv : p.pipeline_parallel_schedule;
  plan.map = table.map;
  plan.pairs = pairs_of(p, model);
  plan.lists = with_transfers(table.computations, table.map);
  plan.ranges = stage_ranges_of(job, model, map.stages());
  const std::string fault = find_fault(plan.lists, plan.map, batch.microbatches);
  require(fault.empty(), ExitCode::usage, "the pipeline schedule {} is wrong: {}", plan.name,
          fault);
  return plan;
}

}  // namespace tessera::plan
