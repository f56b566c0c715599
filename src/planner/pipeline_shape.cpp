// SPDX-License-Identifier: Apache-2.0
#include "pipeline_shape.hpp"

#include <algorithm>

namespace tessera::planner {
namespace {

using schedule::PipelineRank;
using schedule::StageIndex;

void add_cells(PerPart<double>& to, const StageContent& stage) {
  to[Part::embedding] += stage.embedding ? 1 : 0;
  to[Part::dense] += stage.dense;
  to[Part::mixture] += stage.mixtures;
  to[Part::predictor] += static_cast<double>(stage.predictors);
  to[Part::head] += stage.head ? 1 : 0;
}

PartSeconds sum_of(const PerPart<double>& cells, const PerPart<PartSeconds>& parts) {
  PartSeconds sum;
  for (const Part part : kEachPart) {
    const PartSeconds& each = parts[part];
    sum.forward += cells[part] * each.forward;
    sum.input += cells[part] * each.input;
    sum.weight += cells[part] * each.weight;
  }
  return sum;
}

}  // namespace

std::vector<RankShape> shapes_of(const Pipeline& pipeline) {
  std::vector<RankShape> out;
  IndexedVector<StageIndex, RankShape> in_front;
  RankShape next;
  for (const StageIndex stage : pipeline.map.each_stage()) {
    next.lowest = stage.value();
    if (stage != pipeline.map.first() &&
        !pipeline.map.same_rank(StageIndex(stage.value() - 1), stage))
      ++next.crossings;
    in_front.push_back(next);
    add_cells(next.before, pipeline.stages[stage]);
  }
  for (const PipelineRank rank : pipeline.map.each_rank()) {
    const std::vector<StageIndex>& stages = pipeline.map.stages_of(rank);
    RankShape shape = in_front[stages.front()];
    for (const StageIndex stage : stages) {
      add_cells(shape.own, pipeline.stages[stage]);
      shape.receives +=
          (stage != pipeline.map.first() ? 1 : 0) + (stage != pipeline.map.last() ? 1 : 0);
    }
    out.push_back(shape);
  }
  return out;
}

double least_seconds(const Pipeline& pipeline, const std::vector<RankShape>& ranks,
                     const PerPart<PartSeconds>& parts, const MessageSeconds& message,
                     bool splits) {
  const double delay = message.delay, blocked = message.blocks ? delay : 0;
  double least = 0;
  for (const RankShape& rank : ranks) {
    const PartSeconds own = sum_of(rank.own, parts), before = sum_of(rank.before, parts);
    const double messages = rank.receives * blocked;
    const double fill =
        before.forward + rank.crossings * delay + std::max(0, rank.lowest - 1) * blocked;
    const double drain = before.input + rank.crossings * delay + rank.lowest * blocked;
    const int count = pipeline.microbatches;
    const double last_input = fill + count * (own.forward + own.input + messages) + drain;
    const double all = fill + count * (own.forward + own.input + own.weight + messages);
    least = std::max(least, splits ? std::max(last_input, all) : all + drain + before.weight);
  }
  return least * pipeline.rounds;
}

}  // namespace tessera::planner
