// SPDX-License-Identifier: Apache-2.0
#include "pipeline_time.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::planner {
namespace {

using schedule::ActionKind;
using schedule::PipelineRank;
using schedule::StageIndex;

/// Of one rank alone: forward and backward of each microbatch in turn.
schedule::Timeline in_turn(const Pipeline& pipeline, const StageDurations& durations) {
  schedule::Timeline out;
  out.ranks.push_back({});
  double now = 0;
  const auto run = [&](ActionKind kind, StageIndex stage, int microbatch) {
    const double end = now + durations[stage].of(kind);
    out.ranks[PipelineRank(0)].push_back(
        {{kind, stage, schedule::MicrobatchIndex(microbatch)}, now, end});
    now = end;
  };
  for (int i = 0; i < pipeline.microbatches; ++i) {
    for (const StageIndex stage : pipeline.map.each_stage()) run(ActionKind::forward, stage, i);
    for (const StageIndex stage : pipeline.map.each_stage()) run(ActionKind::backward, stage, i);
  }
  return out;
}

}  // namespace

schedule::Timeline step_timeline(const Workload& work, const Machine& machine, const Stack& stack) {
  const Pipeline& pipeline = work.pipeline;
  const StageDurations durations = stage_seconds(work, machine, stack);
  if (pipeline.ranks() == 1) return in_turn(pipeline, durations);
  return simulate(*lists_of(pipeline, pipeline.microbatches), pipeline.map, durations);
}

}  // namespace tessera::planner
