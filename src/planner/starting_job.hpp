// SPDX-License-Identifier: Apache-2.0
// Where a choice of values begins: the job with some value of each key that is left to the planner.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "tessera/config/resolve.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::planner {

/// A job that can be planned.
struct StartingJob {
  config::Resolved job;
  plan::JobPlan plan;
};

/// The job without recomputation, with one sequence a microbatch and the smallest degrees with
/// which it is legal, where `open` has their keys. Nothing if none is, and `problems` is then why.
std::optional<StartingJob> starting_job(const config::Reading& job,
                                        const std::set<std::string_view>& open,
                                        plan::Planner& planner, int ranks, std::int64_t vocabulary,
                                        std::vector<config::Problem>& problems);

}  // namespace tessera::planner
