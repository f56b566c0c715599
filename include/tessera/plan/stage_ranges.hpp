// SPDX-License-Identifier: Apache-2.0
// Where a job cuts its model into pipeline stages.
#pragma once

#include <optional>

#include "tessera/config/job_config.hpp"
#include "tessera/model_spec/model_spec.hpp"
#include "tessera/plan/stage_split.hpp"

namespace tessera::plan {

/// By parallelism.pipeline_parallel_split_points, module_fqns_per_model_part or
/// pipeline_parallel_split: `stages` of them, as many as the cuts make. Nothing for the split
/// "measured", for which cells must be timed. Throws Error(usage) for cuts that the model does not
/// have.
std::optional<StageRanges> stage_ranges_of(const config::JobConfig& job,
                                           const model::ModelSpec& model, int stages);

}  // namespace tessera::plan
