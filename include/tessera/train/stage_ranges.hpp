// SPDX-License-Identifier: Apache-2.0
// Where a job cuts its model into pipeline stages.
#pragma once

#include <optional>

#include "tessera/config/job_config.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/parallel/stage_split.hpp"

namespace tessera::train {

/// By parallelism.pipeline_parallel_split_points, module_fqns_per_model_part or
/// pipeline_parallel_split; the same on every rank: `stages` of them. Only the split "measured"
/// communicates: it times every kind of cell on all ranks of the mesh, with `options` for their
/// stages. Throws Error(usage) when cuts and stages do not fit each other.
parallel::StageRanges stage_ranges_of(const config::JobConfig& job, const model::Model& model,
                                      mesh::DeviceMesh& mesh, int stages,
                                      const parallel::StageOptions& options);

/// The same where it needs no ranks: nothing for the split "measured".
std::optional<parallel::StageRanges> planned_stage_ranges(const config::JobConfig& job,
                                                          const model::ModelSpec& model,
                                                          int stages);

/// Seconds of forward and backward of each cell for one microbatch, on the slowest rank. Cells of
/// the same kind (the same name but for the block's number, the same shapes) are timed once.
/// Collective over the mesh.
std::vector<double> measured_costs(const model::Model& model, mesh::DeviceMesh& mesh,
                                   const parallel::StageOptions& options);

}  // namespace tessera::train
