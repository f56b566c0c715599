// SPDX-License-Identifier: Apache-2.0
// A pipeline as its action lists: how long a step takes.
#pragma once

#include "tessera/planner/workload.hpp"
#include "tessera/schedule/timeline.hpp"

namespace tessera::planner {

using StageDurations = IndexedVector<schedule::StageIndex, schedule::Durations>;

/// Between stages.
struct MessageSeconds {
  double delay = 0;     ///< until the other rank has it, on average
  bool blocks = false;  ///< both ranks compute nothing meanwhile
  double shared = 0;    ///< of a core that ranks share: the copy, a turn, and polling for it
};
MessageSeconds messages_of(const Workload& work, const Machine& machine, const Stack& stack);

/// The lists of `microbatches` microbatches. Those of a plan are what they are.
std::shared_ptr<const schedule::ActionLists> lists_of(const Pipeline& pipeline, int microbatches);

/// Passes of a stage, in a round, that run beside another one's.
struct PairCounts {
  int forward = 0, backward = 0;
};
IndexedVector<schedule::StageIndex, PairCounts> pairs_in(const Pipeline& pipeline);

/// Seconds of all rounds of a step.
double pipeline_seconds(const Pipeline& pipeline, const StageDurations& durations);

}  // namespace tessera::planner
