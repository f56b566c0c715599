// SPDX-License-Identifier: Apache-2.0
// What in a job keeps its steps from being CUDA graphs (compile.enable).
#pragma once

#include <string>

#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

/// Why not, with the key where there is one; empty: nothing in the job. Its device and its
/// communicators may have reasons of their own.
std::string graph_obstacle(const JobPlan& plan);

}  // namespace tessera::plan
