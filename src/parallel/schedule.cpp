#include "tessera/parallel/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "tessera/base/error.hpp"
#include "tessera/parallel/schedule_timeline.hpp"

namespace tessera::parallel {
namespace {

using Kind = ActionKind;

constexpr std::array<std::string_view, kSchedules> kNames{
    "GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "ZBH1", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"};

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
  if (made.kind == Kind::weight_gradient) return;
  const bool forward = made.kind == Kind::forward;
  const int to = forward ? made.stage + 1 : made.stage - 1;
  if (to < 0 || to >= map.stages() || map.same_rank(made.stage, to)) return;
  events.push_back({time,
                    1,
                    map.rank_of(made.stage),
                    {forward ? Kind::send_forward : Kind::send_backward, made.stage, made.microbatch},
                    map.rank_of(to)});
}

Action received(const Action& sent) {
  if (sent.kind == Kind::send_forward) return {Kind::recv_forward, sent.stage + 1, sent.microbatch};
  return {Kind::recv_backward, sent.stage - 1, sent.microbatch};
}

}  // namespace

std::string_view name_of(Schedule schedule) { return kNames[static_cast<std::size_t>(schedule)]; }

std::optional<Schedule> schedule_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return {};
  return static_cast<Schedule>(found - kNames.begin());
}

StagesARank stages_a_rank(Schedule schedule) {
  switch (schedule) {
    case Schedule::gpipe:
    case Schedule::one_f_one_b:
    case Schedule::zb_h1:
      return StagesARank::one;
    case Schedule::zbv:
    case Schedule::dual_pipe_v:
      return StagesARank::two;
    default:
      return StagesARank::several;
  }
}

StageMap usual_map(Schedule schedule, int ranks, int stages_a_rank) {
  const bool folded = parallel::stages_a_rank(schedule) == StagesARank::two;
  return folded ? StageMap::v(ranks, stages_a_rank) : StageMap::loop(ranks, stages_a_rank);
}

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

ActionLists make_schedule(Schedule schedule, const StageMap& map, int microbatches) {
  return with_transfers(compute_orders(schedule, map, microbatches), map);
}

int peak_activations(const ActionList& list) {
  int alive = 0, most = 0;
  for (const Action& action : list) {
    if (action.kind == Kind::forward) most = std::max(most, ++alive);
    if (action.kind == Kind::backward || action.kind == Kind::weight_gradient) --alive;
  }
  return most;
}

std::string to_string(const Action& action) {
  constexpr std::array names{"F", "I", "W", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  const char* name = names[static_cast<std::size_t>(action.kind)];
  return computes(action.kind) ? fmt::format("{}{}{}", action.stage, name, action.microbatch)
                               : fmt::format("{} {}.{}", name, action.stage, action.microbatch);
}

}  // namespace tessera::parallel
