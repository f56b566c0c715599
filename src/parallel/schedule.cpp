#include "tessera/parallel/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "tessera/base/error.hpp"

namespace tessera::parallel {
namespace {

using Kind = ActionKind;

/// Places computations on a time line (forward 1, backward 2) and remembers when each ends.
class Timeline {
 public:
  explicit Timeline(const std::vector<ActionList>& lists) : lists_(lists), next_(lists.size(), 0), free_(lists.size(), 0) {}

  void run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < lists_.size(); ++rank)
        while (next_[rank] < lists_[rank].size() && step(rank)) moved = true;
    }
    for (std::size_t rank = 0; rank < lists_.size(); ++rank)
      TESSERA_EXPECT(next_[rank] == lists_[rank].size(), "pipeline rank {} waits for ever at {}", rank,
                     to_string(lists_[rank][next_[rank]]));
  }

  double end(const Action& action) const { return ends_.at(key(action)); }

 private:
  using Key = std::tuple<bool, int, int>;
  static Key key(const Action& a) { return {a.kind == Kind::forward, a.stage, a.microbatch}; }

  int last_stage() const { return static_cast<int>(lists_.size()) - 1; }

  /// When the action's input is there; negative if it is not yet known.
  double input_time(const Action& a) const {
    const auto when = [&](Kind kind, int stage) {
      const auto found = ends_.find(key({kind, stage, a.microbatch}));
      return found == ends_.end() ? -1.0 : found->second;
    };
    if (a.kind == Kind::forward) return a.stage == 0 ? 0 : when(Kind::forward, a.stage - 1);
    return a.stage == last_stage() ? when(Kind::forward, a.stage) : when(Kind::backward, a.stage + 1);
  }

  bool step(std::size_t rank) {
    const Action& action = lists_[rank][next_[rank]];
    const double ready = input_time(action);
    if (ready < 0) return false;
    free_[rank] = std::max(free_[rank], ready) + (action.kind == Kind::forward ? 1 : 2);
    ends_[key(action)] = free_[rank];
    ++next_[rank];
    return true;
  }

  const std::vector<ActionList>& lists_;
  std::vector<std::size_t> next_;
  std::vector<double> free_;
  std::map<Key, double> ends_;
};

/// An event of the global order: computations stand at their end, transfers right behind the computation that made them.
struct Event {
  double time;
  int order;  ///< computations before transfers of the same time
  std::size_t rank;
  Action action;
  std::size_t peer;  ///< of a transfer: the receiving rank
};

void add_transfer(std::vector<Event>& events, const Action& made, std::size_t rank, double time, int stages) {
  const bool forward = made.kind == Kind::forward;
  const int to = forward ? made.stage + 1 : made.stage - 1;
  if (to < 0 || to >= stages) return;
  events.push_back({time, 1, rank, {forward ? Kind::send_forward : Kind::send_backward, made.stage, made.microbatch},
                    static_cast<std::size_t>(to)});
}

Action received(const Action& sent) {
  if (sent.kind == Kind::send_forward) return {Kind::recv_forward, sent.stage + 1, sent.microbatch};
  return {Kind::recv_backward, sent.stage - 1, sent.microbatch};
}

}  // namespace

ActionList compute_order(Schedule schedule, int stages, int rank, int microbatches) {
  ActionList list;
  const int ahead = schedule == Schedule::gpipe ? microbatches : std::min(microbatches, stages - rank);
  int forward = 0, backward = 0;
  while (forward < ahead) list.push_back({Kind::forward, rank, forward++});
  while (backward < microbatches) {
    list.push_back({Kind::backward, rank, backward++});
    if (forward < microbatches) list.push_back({Kind::forward, rank, forward++});
  }
  return list;
}

std::vector<ActionList> with_transfers(const std::vector<ActionList>& computations) {
  Timeline timeline(computations);
  timeline.run();
  std::vector<Event> events;
  for (std::size_t rank = 0; rank < computations.size(); ++rank) {
    for (const Action& action : computations[rank]) {
      const double time = timeline.end(action);
      events.push_back({time, 0, rank, action, rank});
      add_transfer(events, action, rank, time, static_cast<int>(computations.size()));
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.order, a.rank) < std::tie(b.time, b.order, b.rank);
  });
  std::vector<ActionList> lists(computations.size());
  for (const Event& event : events) {
    lists[event.rank].push_back(event.action);
    if (event.order == 1) lists[event.peer].push_back(received(event.action));
  }
  return lists;
}

std::vector<ActionList> make_schedule(Schedule schedule, int stages, int microbatches) {
  std::vector<ActionList> computations;
  for (int rank = 0; rank < stages; ++rank) computations.push_back(compute_order(schedule, stages, rank, microbatches));
  return with_transfers(computations);
}

std::string to_string(const Action& action) {
  constexpr std::array names{"F", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};
  const char* name = names[static_cast<std::size_t>(action.kind)];
  const bool computes = action.kind == Kind::forward || action.kind == Kind::backward;
  return computes ? fmt::format("{}{}{}", action.stage, name, action.microbatch)
                  : fmt::format("{} {}.{}", name, action.stage, action.microbatch);
}

}  // namespace tessera::parallel
