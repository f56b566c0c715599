// SPDX-License-Identifier: Apache-2.0
#include "pipeline_time.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "collectives.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::planner {
namespace {

using schedule::ActionLists;

/// Generated lists that were asked for last: a search prices many workloads with the same ones.
std::shared_ptr<const ActionLists> generated(schedule::Kind kind, const Pipeline& pipeline,
                                             int microbatches) {
  const schedule::StageMap& map = pipeline.map;
  static std::mutex guard;
  static std::map<std::tuple<int, int, int, int, schedule::Pairs>,
                  std::shared_ptr<const ActionLists>>
      known;
  const std::lock_guard lock(guard);
  if (known.size() > 256) known.clear();
  auto& lists =
      known[{static_cast<int>(kind), map.ranks(), map.stages(), microbatches, pipeline.pairs}];
  if (!lists)
    lists = std::make_shared<const ActionLists>(
        compute_orders(kind, map, microbatches, pipeline.pairs));
  return lists;
}

double simulated(const Pipeline& pipeline, const StageDurations& durations, int microbatches) {
  return simulate(*lists_of(pipeline, microbatches), pipeline.map, durations).end();
}

double sequential_seconds(const Pipeline& pipeline, const StageDurations& durations) {
  double each = 0;
  for (const schedule::Durations& stage : durations)
    each += stage.forward + stage.input + stage.weight;
  return each * pipeline.microbatches_a_step();
}

/// A steady state repeats after as many microbatches as there are ranks.
double continued(const Pipeline& pipeline, const StageDurations& durations) {
  const int period = pipeline.ranks(), whole = pipeline.microbatches;
  const int shorter = 3 * period + whole % period;
  if (whole <= shorter + period) return simulated(pipeline, durations, whole);
  const double first = simulated(pipeline, durations, shorter);
  const double second = simulated(pipeline, durations, shorter + period);
  return first + (second - first) * (whole - shorter) / period;
}

/// A rank that waits for a message of its pipeline polls, and yields, for up to 5 ms. This is what
/// others that share its core lose, fitted to steps of eight ranks on two cores of a Zen 5.
constexpr double kPollingSeconds = 6e-4;

}  // namespace

MessageSeconds messages_of(const Workload& work, const Machine& machine, const Stack& stack) {
  const int ranks = work.pipeline.ranks();
  if (ranks == 1) return {};
  const double bytes = work.local_tokens() * static_cast<double>(work.model.dim) *
                       element_bytes(work.precision) / (work.sequence_parallel ? work.tp : 1);
  const bool blocks = stack.p2p_overlap == MessageOverlap::never ||
                      (stack.p2p_overlap == MessageOverlap::chunks && work.pipeline.chunks() == 1);
  const int stride = work.gpus / ranks;
  const double slowest = send_seconds(machine, bytes, group_of(machine, ranks, stride)),
               fastest = send_seconds(machine, bytes, group_of(machine, 1, stride));
  // Ranks that compute nothing meanwhile all wait for the slowest. Otherwise what counts is the
  // way through the pipeline, on which few messages may leave a domain.
  const int domains = (work.gpus + machine.nvlink_domain - 1) / machine.nvlink_domain;
  const double leave = std::min(1.0, static_cast<double>(domains - 1) / (ranks - 1));
  const double delay = blocks ? slowest : fastest + leave * (slowest - fastest);
  const double seconds = delay + turn_seconds(machine);
  return {seconds, blocks, share_cores(machine) ? seconds + kPollingSeconds : 0};
}

std::shared_ptr<const ActionLists> lists_of(const Pipeline& pipeline, int microbatches) {
  if (pipeline.lists) return pipeline.lists;
  return generated(pipeline.kind.value(), pipeline, microbatches);
}

IndexedVector<schedule::StageIndex, PairCounts> pairs_in(const Pipeline& pipeline) {
  IndexedVector<schedule::StageIndex, PairCounts> out(pipeline.map.stages());
  if (pipeline.ranks() == 1 || pipeline.pairs == schedule::Pairs::apart) return out;
  for (const schedule::ActionList& list : *lists_of(pipeline, pipeline.microbatches))
    for (auto action = list.begin(); action != list.end(); ++action) {
      if (!action->overlaps_next) continue;
      ++out[action[0].stage].forward;
      ++out[action[1].stage].backward;
    }
  return out;
}

double pipeline_seconds(const Pipeline& pipeline, const StageDurations& durations) {
  if (pipeline.ranks() == 1) return sequential_seconds(pipeline, durations);
  const double round = pipeline.lists ? simulated(pipeline, durations, pipeline.microbatches)
                                      : continued(pipeline, durations);
  return round * pipeline.rounds;
}

}  // namespace tessera::planner
