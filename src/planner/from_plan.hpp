// SPDX-License-Identifier: Apache-2.0
// What single values of a plan mean for a workload.
#pragma once

#include "tessera/plan/stage_split.hpp"
#include "tessera/planner/workload.hpp"

namespace tessera::planner {

/// The stages that hold these cells.
IndexedVector<schedule::StageIndex, StageContent> stages_of(const model::ModelSpec& model,
                                                            const plan::StageRanges& ranges,
                                                            std::int64_t seq);

/// Are weights freed after the forward? Of the policy for all units; rules for single units are not
/// looked at.
bool frees(const plan::ReshardPolicy& policy, bool pipelined);

/// Are gradients added up whole?
bool sums_whole(plan::Accumulation accumulation, bool pipelined);

}  // namespace tessera::planner
