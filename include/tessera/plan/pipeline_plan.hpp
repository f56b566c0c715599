// SPDX-License-Identifier: Apache-2.0
// How a job's pipeline runs: which rank holds which stages, and what each rank does in which order.
#pragma once

#include <optional>
#include <string>

#include "tessera/config/job_config.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/batch_plan.hpp"
#include "tessera/plan/stage_split.hpp"
#include "tessera/schedule/schedule.hpp"
#include "tessera/schedule/stage_map.hpp"

namespace tessera::plan {

struct PipelinePlan {
  std::string name;  ///< of the schedule, or its file
  schedule::StageMap map;
  schedule::ActionLists lists;        ///< by rank, for one round of the batch plan
  schedule::Pairs pairs = {};         ///< see pairs_of()
  std::optional<StageRanges> ranges;  ///< of the stages; none: cells are to be timed first
};

/// By parallelism.pipeline_parallel_schedule, _csv, _stage_map, _layers_per_stage and the cuts. One
/// rank has one stage, whatever these say. Reads the schedule's file, if there is one. Throws
/// Error(usage) where schedule, stages and ranks do not fit each other.
schedule::StageMap stage_map_of(const config::Parallelism& parallelism,
                                const model::ModelSpec& model, int ranks);

/// Whether a forward and a backward of a schedule's pairs run together: where tokens travel to
/// experts of other ranks, if parallelism.pipeline_parallel_expert_parallel_overlap says so. Apart
/// for a schedule without pairs; one from a file may have them.
schedule::Pairs pairs_of(const config::Parallelism& parallelism, const model::ModelSpec& model);

/// On `ranks` pipeline ranks, with fewer microbatches than its schedule needs to be more than a
/// queue, or with a number that leaves a round open: PyTorch refuses them, and so does this,
/// although the first would run. Throws Error(usage) with what would be allowed.
void check_microbatches(const config::JobConfig& job, int ranks, const BatchPlan& batch);

/// For the stages of stage_map_of(); the lists are checked. Throws Error(usage) where a schedule
/// from a file is wrong, or is for another number of microbatches.
PipelinePlan pipeline_plan_of(const config::JobConfig& job, const model::ModelSpec& model,
                              const schedule::StageMap& map, const BatchPlan& batch);

}  // namespace tessera::plan
