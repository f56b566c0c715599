// SPDX-License-Identifier: Apache-2.0
// What a plan means for a workload.
#pragma once

#include "tessera/plan/stage_split.hpp"
#include "tessera/planner/workload.hpp"

namespace tessera::planner {

/// The stages that hold these cells.
IndexedVector<schedule::StageIndex, StageContent> stages_of(const model::ModelSpec& model,
                                                            const plan::StageRanges& ranges,
                                                            std::int64_t seq);

}  // namespace tessera::planner
