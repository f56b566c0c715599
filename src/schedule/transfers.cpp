// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/schedule.hpp"

#include <numeric>

#include "tessera/schedule/timeline.hpp"

namespace tessera::schedule {
namespace {

struct Computed {
  PipelineRank rank;
  Action action;
};

/// Computations in the order of their ends, those of one time by rank.
struct Ends {
  std::vector<Computed> computed;
  std::vector<std::size_t> until;  ///< by time: one past the last computation that ends then
};

/// Ranks lag behind each other by their transfers. A rank must ask for what another has computed
/// before the computation that it would have ended by then without a lag, so transfers take time
/// here. How much of it does not matter.
constexpr Durations kLagging{.forward = 4, .input = 4, .weight = 4, .transfer = 1};

/// Counts the ends at each time, which takes linear time: with such durations, times are whole.
Ends ends_of(const Timeline& timeline) {
  const auto at = [](const TimedAction& timed) { return static_cast<std::size_t>(timed.end); };
  std::vector<std::size_t> place(static_cast<std::size_t>(timeline.end()) + 2, 0);
  for (const auto& rank : timeline.ranks)
    for (const TimedAction& timed : rank) ++place[at(timed) + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<Computed> computed(place.back());
  for (const PipelineRank rank : timeline.ranks.indexes())
    for (const TimedAction& timed : timeline.ranks[rank])
      computed[place[at(timed)]++] = {rank, timed.action};
  return {std::move(computed), std::move(place)};
}

Action received(const Action& sent) {
  if (sent.kind == ActionKind::send_forward)
    return {ActionKind::recv_forward, sent.stage + 1, sent.microbatch};
  return {ActionKind::recv_backward, sent.stage - 1, sent.microbatch};
}

/// The transfer that a computation asks for, if its result is for another rank: its two halves.
void add_transfer(ActionLists& lists, const Computed& made, const StageMap& map) {
  const Action& a = made.action;
  if (a.kind == ActionKind::weight_gradient) return;
  const bool forward = a.kind == ActionKind::forward;
  const StageIndex to = forward ? a.stage + 1 : a.stage - 1;
  if (!map.has(to) || map.same_rank(a.stage, to)) return;
  const Action sent{forward ? ActionKind::send_forward : ActionKind::send_backward, a.stage,
                    a.microbatch};
  lists[made.rank].push_back(sent);
  lists[map.rank_of(to)].push_back(received(sent));
}

}  // namespace

/// The global order: computations at their ends, and after those of one time the transfers that
/// they ask for.
ActionLists with_transfers(const ActionLists& computations, const StageMap& map) {
  const Ends ends = ends_of(simulate(computations, map, kLagging));
  ActionLists lists(computations.size());
  for (const PipelineRank rank : lists.indexes())
    lists[rank].reserve(3 * computations[rank].size());
  std::size_t begin = 0;
  for (const std::size_t end : ends.until) {
    for (std::size_t i = begin; i < end; ++i)
      lists[ends.computed[i].rank].push_back(ends.computed[i].action);
    for (std::size_t i = begin; i < end; ++i) add_transfer(lists, ends.computed[i], map);
    begin = end;
  }
  return lists;
}

ActionLists make_schedule(Kind schedule, const StageMap& map, int microbatches) {
  return with_transfers(compute_orders(schedule, map, microbatches), map);
}

}  // namespace tessera::schedule
