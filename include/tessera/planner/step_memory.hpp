// SPDX-License-Identifier: Apache-2.0
// What each rank of a pipeline holds while a step runs.
#pragma once

#include <vector>

#include "tessera/planner/memory.hpp"

namespace tessera::planner {

struct MemoryPoint {
  double seconds = 0, bytes = 0;
};

struct RankMemory {
  double constant = 0;  ///< what does not depend on microbatches, with the buffers of a block
  /// Activations, the loss and whole gradients, from the first microbatch to the last of a round,
  /// with straight lines between. The largest is that of memory_of().
  std::vector<MemoryPoint> activations;
};

/// One for each rank. A forward adds what it keeps bit by bit, and a backward frees it so.
IndexedVector<schedule::PipelineRank, RankMemory> memory_over_step(const Workload& work,
                                                                   const Machine& machine,
                                                                   const Stack& stack);

}  // namespace tessera::planner
