// SPDX-License-Identifier: Apache-2.0
// What a step of a workload costs on a machine: seconds, by axis and category, and bytes by term.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tessera/planner/machine.hpp"
#include "tessera/planner/memory.hpp"
#include "tessera/planner/stack.hpp"
#include "tessera/planner/workload.hpp"
#include "tessera/schedule/timeline.hpp"

namespace tessera::planner {

/// Seconds of a step in which the busiest rank waits for an axis. pp: the bubble and messages.
struct Exposed {
  double tp = 0, cp = 0, ep = 0, pp = 0, dp = 0;
};

struct Price {
  double step_seconds = 0;
  double tokens_per_second_per_gpu = 0;
  /// Model FLOPs to the peak of the data sheet, in the format of most products: with attention
  /// counted full, and causal (half).
  double mfu_full = 0, mfu_causal = 0;
  /// 1 - work of the mean rank / time of the pipeline: messages that take shared cores count, too.
  double bubble = 0;
  double idle_share = 0;  ///< the same where each rank has a core of its own
  Exposed exposed;
  /// Of the busiest rank in a step, without waiting; recomputation is in backward, too.
  double forward_seconds = 0, backward_seconds = 0, optimizer_seconds = 0, recompute_seconds = 0;
  double calls = 0;   ///< of the same, in which it waits for others
  Memory memory;      ///< of the rank that needs most
  bool fits = false;  ///< with what a process needs beside its allocator
  /// Seconds of the busiest rank by category, longest first, without zeros.
  std::vector<std::pair<std::string, double>> seconds;
};

/// Simulates one step: every stage's computations are priced kernel by kernel, and run in the order
/// of the schedule's action lists. Long runs of a generated schedule are continued from their
/// steady state. Throws as require_products().
Price price(const Workload& work, const Machine& machine, const Stack& stack);

/// Of one microbatch on each stage, with what is waited for.
IndexedVector<schedule::StageIndex, schedule::Durations> stage_seconds(const Workload& work,
                                                                       const Machine& machine,
                                                                       const Stack& stack);

/// When each rank of the pipeline does what, from the first microbatch to the last of a round, in
/// seconds; what is waited for is part of the actions.
schedule::Timeline step_timeline(const Workload& work, const Machine& machine, const Stack& stack);

}  // namespace tessera::planner
