// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

/// For each row of a run's table of times, the first key that acts on it, that the job has not set,
/// and with which the job would still start.
std::vector<metrics::TimeHint> time_hints(const config::Resolved& job, const JobPlan& plan);

}  // namespace tessera::plan
