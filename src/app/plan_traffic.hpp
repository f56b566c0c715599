// SPDX-License-Identifier: Apache-2.0
// The traffic of a planned job's step, for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tessera/plan/job_plan.hpp"

namespace tessera::app {

/// The first rank of each rank of the pipeline: others differ by short shards at most.
std::vector<mesh::Rank> pipeline_ranks(const mesh::Layout& layout);

/// Of the rank that sends the most, one for each rank of the pipeline being looked at.
std::string traffic_table(const plan::JobPlan& plan);
/// Of one rank for each rank of the pipeline; a text where the traffic is not predicted.
nlohmann::json traffic_json(const plan::JobPlan& plan);

}  // namespace tessera::app
