// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/step_memory.hpp"

#include <algorithm>

#include "kept_bytes.hpp"
#include "pipeline_time.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::planner {
namespace {

using schedule::PipelineRank;
using schedule::TimedAction;

}  // namespace

IndexedVector<PipelineRank, RankMemory> memory_over_step(const Workload& work,
                                                         const Machine& machine,
                                                         const Stack& stack) {
  const Pipeline& pipeline = work.pipeline;
  const schedule::Timeline timeline = step_timeline(work, machine, stack);
  IndexedVector<PipelineRank, RankMemory> out;
  for (const PipelineRank rank : pipeline.map.each_rank()) {
    const Memory memory = memory_of(work, stack, rank);
    RankMemory here{memory.total() - memory.activations, {}};
    double now = 0, most = 0, until = 0;
    for (const TimedAction& timed : timeline.ranks[rank]) {
      here.activations.push_back({std::max(until, timed.begin), now});
      now +=
          kept_by(timed.action.kind) * kept_bytes(work, stack, pipeline.stages[timed.action.stage]);
      // Of a pair, what one adds is there before the other frees its own.
      until = timed.action.overlaps_next ? (timed.begin + timed.end) / 2 : timed.end;
      here.activations.push_back({until, now});
      most = std::max(most, now);
    }
    // Offloading takes its share of what is kept.
    for (MemoryPoint& point : here.activations)
      point.bytes *= most > 0 ? memory.activations / most : 0;
    out.push_back(std::move(here));
  }
  return out;
}

}  // namespace tessera::planner
