// SPDX-License-Identifier: Apache-2.0
// What the planner tells a run that starts: its machine, and the changes of one knob that would
// help it, should it run out of memory or be slow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/config/resolve.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/planner/machine.hpp"

namespace tessera::planner {

/// Where the ranks of a run are.
struct RunPlace {
  bool on_gpus = false;
  int ranks_on_node = 1;
  double room_bytes = 0;  ///< that a rank's tensors can take; 0: not known
};

struct RunAdvice {
  /// Nothing on GPUs that the job does not name.
  std::optional<Machine> machine;
  /// "the planner's best changes: KEY = VALUE wins 3.10 GiB for +24 % step time; ...", for the end
  /// of a message; empty: no change of one knob helps.
  std::string against_memory;
  /// "KEY = VALUE wins 38 %", best first; none without a machine.
  std::vector<std::string> faster;
};

/// The machine is job.machine if it is one of the kind that the ranks are on, or else the host as
/// its processor describes itself. Never throws: what the planner cannot price gets no advice.
RunAdvice advice_for(const config::Resolved& job, const plan::JobPlan& plan,
                     const RunPlace& place) noexcept;

}  // namespace tessera::planner
