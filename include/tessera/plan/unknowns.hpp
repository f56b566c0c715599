// SPDX-License-Identifier: Apache-2.0
// What a plan leaves to the run, so that nobody can say before what a step needs.
#pragma once

#include <string>

#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

/// Which key lets the run decide by what it measures; empty if none does.
std::string measured_first(const JobPlan& plan);

/// Why ranks exchange as many rows of experts as the data says; empty if they do not.
std::string uneven_experts(const JobPlan& plan);

}  // namespace tessera::plan
