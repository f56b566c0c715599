// SPDX-License-Identifier: Apache-2.0
// What in a job keeps its steps from being CUDA graphs (compile.enable).
#pragma once

#include <string>

#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

/// Why not, with the key where there is one; empty: nothing in the job. Its device and its
/// communicators may have reasons of their own.
std::string graph_obstacle(const JobPlan& plan);
/// The same, whatever its experts need.
std::string obstacle_beside_experts(const JobPlan& plan);

/// Products of a mixture's experts on one rank.
struct ExpertProducts {
  DType type = DType::bf16;
  std::int64_t dim = 0, hidden = 0;  ///< sizes of an expert's matrices on the rank
  /// Other ranks' tokens arrive in numbers that only the host can ask for.
  bool counted_rows = false;
};
/// Why the host must know how many tokens each expert gets; empty: it need not.
std::string experts_obstacle(const ExpertProducts& products);

}  // namespace tessera::plan
