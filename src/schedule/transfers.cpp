#include "tessera/schedule/schedule.hpp"

#include <algorithm>
#include <tuple>

#include "tessera/schedule/timeline.hpp"

namespace tessera::schedule {
namespace {

/// An event of the global order: computations stand at their end, transfers right behind the computation that made
/// them.
struct Event {
  double time;
  int order;  ///< computations before transfers of the same time
  int rank;
  Action action;
  int peer;  ///< of a transfer: the receiving rank
};

/// The transfer that a computation asks for, if its result is for another rank.
void add_transfer(std::vector<Event>& events, const Action& made, double time, const StageMap& map) {
  if (made.kind == ActionKind::weight_gradient) return;
  const bool forward = made.kind == ActionKind::forward;
  const int to = forward ? made.stage + 1 : made.stage - 1;
  if (to < 0 || to >= map.stages() || map.same_rank(made.stage, to)) return;
  events.push_back({time,
                    1,
                    map.rank_of(made.stage),
                    {forward ? ActionKind::send_forward : ActionKind::send_backward, made.stage, made.microbatch},
                    map.rank_of(to)});
}

Action received(const Action& sent) {
  if (sent.kind == ActionKind::send_forward) return {ActionKind::recv_forward, sent.stage + 1, sent.microbatch};
  return {ActionKind::recv_backward, sent.stage - 1, sent.microbatch};
}

}  // namespace

ActionLists with_transfers(const ActionLists& computations, const StageMap& map) {
  const Timeline timeline = simulate(computations, map);
  std::vector<Event> events;
  for (int rank = 0; rank < map.ranks(); ++rank)
    for (const TimedAction& timed : timeline.ranks[static_cast<std::size_t>(rank)]) {
      events.push_back({timed.end, 0, rank, timed.action, rank});
      add_transfer(events, timed.action, timed.end, map);
    }
  std::ranges::stable_sort(events, {}, [](const Event& e) { return std::tuple(e.time, e.order, e.rank); });
  ActionLists lists(computations.size());
  for (const Event& event : events) {
    lists[static_cast<std::size_t>(event.rank)].push_back(event.action);
    if (event.order == 1) lists[static_cast<std::size_t>(event.peer)].push_back(received(event.action));
  }
  return lists;
}

ActionLists make_schedule(Kind schedule, const StageMap& map, int microbatches) {
  return with_transfers(compute_orders(schedule, map, microbatches), map);
}

}  // namespace tessera::schedule
