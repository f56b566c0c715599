// SPDX-License-Identifier: Apache-2.0
// The split of a model into pipeline stages that is made by timing its cells.
#pragma once

#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/plan/pipeline_plan.hpp"

namespace tessera::train {

/// The planned stages. Where they are left to measurement, times every kind of cell on all ranks of
/// the mesh, with `options` for their stages; collective then. The same on every rank.
plan::StageRanges stage_ranges_of(const plan::PipelinePlan& pipeline, const model::Model& model,
                                  mesh::DeviceMesh& mesh, const parallel::StageOptions& options);

}  // namespace tessera::train
