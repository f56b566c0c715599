#include "tessera/schedule/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "tessera/base/error.hpp"

namespace tessera::schedule {
namespace {

class Simulation {
 public:
  Simulation(const ActionLists& lists, const StageMap& map, const Durations& durations)
      : lists_(lists), map_(map), durations_(durations), next_(lists.size(), 0), free_(lists.size(), 0) {
    timeline_.ranks.resize(lists.size());
  }

  Timeline run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < lists_.size(); ++rank)
        while (next_[rank] < lists_[rank].size() && step(rank)) moved = true;
    }
    std::string waiting;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank)
      if (next_[rank] < lists_[rank].size())
        waiting +=
            fmt::format("{}rank {} at {}", waiting.empty() ? "" : ", ", rank, to_string(lists_[rank][next_[rank]]));
    require(waiting.empty(), ExitCode::usage,
            "the pipeline schedule deadlocks: {}; move what they wait for before them", waiting);
    return std::move(timeline_);
  }

 private:
  using Key = std::tuple<ActionKind, int, int>;

  /// B has I's place: its result is the same.
  static Key key(ActionKind kind, const Action& a) {
    return {kind == ActionKind::backward ? ActionKind::input_gradient : kind, a.stage, a.microbatch};
  }

  /// When a result is there for a stage; infinity if that is not known yet.
  double when(ActionKind kind, int stage, const Action& user) const {
    const auto found = ends_.find({kind, stage, user.microbatch});
    if (found == ends_.end()) return std::numeric_limits<double>::infinity();
    return found->second + (map_.same_rank(stage, user.stage) ? 0 : durations_.transfer);
  }

  double input_time(const Action& a) const {
    if (a.kind == ActionKind::forward) return a.stage == 0 ? 0 : when(ActionKind::forward, a.stage - 1, a);
    if (a.kind == ActionKind::weight_gradient) return when(ActionKind::input_gradient, a.stage, a);
    const double activations = when(ActionKind::forward, a.stage, a);
    return a.stage + 1 == map_.stages() ? activations
                                        : std::max(activations, when(ActionKind::input_gradient, a.stage + 1, a));
  }

  bool step(std::size_t rank) {
    const Action& action = lists_[rank][next_[rank]];
    if (computes(action.kind)) {
      const double begin = std::max(free_[rank], input_time(action));
      if (begin == std::numeric_limits<double>::infinity()) return false;
      free_[rank] = begin + durations_.of(action.kind);
      ends_[key(action.kind, action)] = free_[rank];
      timeline_.ranks[rank].push_back({action, begin, free_[rank]});
    }
    ++next_[rank];
    return true;
  }

  const ActionLists& lists_;
  const StageMap& map_;
  Durations durations_;
  std::vector<std::size_t> next_;
  std::vector<double> free_;
  std::map<Key, double> ends_;
  Timeline timeline_;
};

double busy(const std::vector<TimedAction>& rank) {
  double sum = 0;
  for (const TimedAction& timed : rank) sum += timed.end - timed.begin;
  return sum;
}

}  // namespace

double Durations::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::forward:
      return forward;
    case ActionKind::input_gradient:
      return input;
    case ActionKind::weight_gradient:
      return weight;
    case ActionKind::backward:
      return input + weight;
    default:
      return 0;
  }
}

double Timeline::begin() const {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& rank : ranks)
    if (!rank.empty()) first = std::min(first, rank.front().begin);
  return first;
}

double Timeline::end() const {
  double last = 0;
  for (const auto& rank : ranks)
    if (!rank.empty()) last = std::max(last, rank.back().end);
  return last;
}

double Timeline::bubble() const {
  double sum = 0;
  for (const auto& rank : ranks) sum += busy(rank);
  return 1 - sum / static_cast<double>(ranks.size()) / (end() - begin());
}

double Timeline::bubble_of(std::size_t rank) const {
  return 1 - busy(ranks[rank]) / (ranks[rank].back().end - ranks[rank].front().begin);
}

Timeline simulate(const ActionLists& lists, const StageMap& map, const Durations& durations) {
  return Simulation(lists, map, durations).run();
}

}  // namespace tessera::schedule
