// SPDX-License-Identifier: Apache-2.0
// How a job's pipeline runs: which rank holds which stages, and what each rank does in which order.
#pragma once

#include "tessera/config/job_config.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/model/model.hpp"
#include "tessera/schedule/action.hpp"
#include "tessera/schedule/stage_map.hpp"
#include "tessera/train/batch_plan.hpp"

namespace tessera::train {

struct PipelinePlan {
  schedule::StageMap map;
  schedule::ActionLists lists;  ///< by rank, for one round of the batch plan
};

/// By parallelism.pipeline_parallel_schedule, _csv, _stage_map, _layers_per_stage and the cuts; the
/// lists are checked. One rank has one stage, whatever these say. Reads the schedule's file, if
/// there is one. Throws Error(usage), before anything is allocated, where schedule, stages, ranks
/// and microbatches do not fit each other.
PipelinePlan pipeline_plan_of(const config::JobConfig& job, const model::ModelSpec& model,
                              const mesh::Layout& layout, const BatchPlan& plan);

/// A job's pipeline with fewer microbatches than its schedule needs to be more than a queue:
/// PyTorch refuses them, and so does this, although they would run. Throws Error(usage) with what
/// would be allowed.
void check_microbatches(const config::JobConfig& job, const mesh::Layout& layout,
                        const BatchPlan& plan);

/// All that model, mesh, batch and schedule must agree on. Throws Error(usage) that says what would
/// do.
void check_job_fits(const config::JobConfig& job, const model::ModelSpec& model,
                    const mesh::Layout& layout, const BatchPlan& plan);

}  // namespace tessera::train
