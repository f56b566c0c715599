// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/step_memory.hpp"

#include <algorithm>

#include "held_bytes.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::planner {
namespace {

using schedule::PipelineRank;
using schedule::TimedAction;

schedule::ActionList actions_of(const std::vector<TimedAction>& timed) {
  schedule::ActionList out;
  for (const TimedAction& each : timed) out.push_back(each.action);
  return out;
}

}  // namespace

IndexedVector<PipelineRank, RankMemory> memory_over_step(const Workload& work,
                                                         const Machine& machine,
                                                         const Stack& stack) {
  const Pipeline& pipeline = work.pipeline;
  const schedule::Timeline timeline = step_timeline(work, machine, stack);
  const BytesOfStages bytes = stage_bytes(work, stack);
  IndexedVector<PipelineRank, RankMemory> out;
  for (const PipelineRank rank : pipeline.map.each_rank()) {
    const Memory memory = memory_of(work, stack, rank);
    const OnDevice on_device = left_on_device(work, stack, rank);
    const Held peak = most_held(pipeline, rank, bytes, on_device);
    const auto varying = [&](const Held& held) {
      return held.total() - held.kept + on_device(held.kept);
    };
    HeldCounts counts(pipeline.map.stages_of(rank), actions_of(timeline.ranks[rank]),
                      pipeline.rounds);
    const double idle = held_at(counts.now(), bytes).working;
    const auto now = [&] { return varying(held_at(counts.now(), bytes)) - idle; };
    RankMemory here{memory.total() - varying(peak) + idle, {}};
    double until = 0;
    for (const TimedAction& timed : timeline.ranks[rank]) {
      here.activations.push_back({std::max(until, timed.begin), now()});
      counts.run(timed.action);
      // Of a pair, what one adds is there before the other frees its own.
      until = timed.action.overlaps_next ? (timed.begin + timed.end) / 2 : timed.end;
      here.activations.push_back({until, now()});
    }
    out.push_back(std::move(here));
  }
  return out;
}

}  // namespace tessera::planner
