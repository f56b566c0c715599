// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cells.hpp"
#include "tessera/base/error.hpp"

namespace tessera::schedule {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Each rank runs until it waits for another; a result sets the neighbour that may use it going
/// again.
class Simulation {
 public:
  Simulation(const ActionLists& lists, const StageMap& map,
             const IndexedVector<StageIndex, Durations>& durations)
      : lists_(lists),
        map_(map),
        durations_(durations),
        cells_(lists, map.stages()),
        next_(lists.size(), 0),
        free_(lists.size(), 0),
        forward_ends_(cells_.size(), kNever),
        backward_ends_(cells_.size(), kNever),
        called_(lists.size(), false) {
    for (const ActionList& list : lists) {
      timeline_.ranks.push_back({});
      timeline_.ranks.back().reserve(static_cast<std::size_t>(
          std::ranges::count_if(list, [](const Action& action) { return computes(action.kind); })));
    }
  }

  Timeline run() {
    for (const PipelineRank rank : lists_.indexes()) call(rank);
    while (!calls_.empty()) {
      const PipelineRank rank = calls_.back();
      calls_.pop_back();
      called_[rank] = false;
      while (at(rank) && step(rank, *at(rank))) {
      }
    }
    std::string waiting;
    for (const PipelineRank rank : lists_.indexes())
      if (const Action* action = at(rank))
        waiting +=
            fmt::format("{}rank {} at {}", waiting.empty() ? "" : ", ", rank, to_string(*action));
    require(waiting.empty(), ExitCode::usage,
            "the pipeline schedule deadlocks: {}; move what they wait for before them", waiting);
    return std::move(timeline_);
  }

 private:
  /// The rank's next action; null at its end.
  const Action* at(PipelineRank rank) const {
    return next_[rank] < lists_[rank].size() ? &lists_[rank][next_[rank]] : nullptr;
  }

  void call(PipelineRank rank) {
    if (called_[rank]) return;
    called_[rank] = true;
    calls_.push_back(rank);
  }

  /// When a result of `stage` is there for `user`; kNever if that is not known yet.
  double when(const std::vector<double>& ends, StageIndex stage, const Action& user) const {
    return ends[cells_.of(stage, user.microbatch)] +
           (map_.same_rank(stage, user.stage) ? 0 : durations_[user.stage].transfer);
  }

  double input_time(const Action& a) const {
    if (a.kind == ActionKind::forward)
      return a.stage == map_.first() ? 0 : when(forward_ends_, a.stage - 1, a);
    if (a.kind == ActionKind::weight_gradient) return when(backward_ends_, a.stage, a);
    const double activations = when(forward_ends_, a.stage, a);
    return a.stage == map_.last() ? activations
                                  : std::max(activations, when(backward_ends_, a.stage + 1, a));
  }

  /// B has I's place: its result is the same.
  void finish(const Action& a, double end) {
    if (a.kind == ActionKind::weight_gradient) return;
    const bool forward = a.kind == ActionKind::forward;
    (forward ? forward_ends_ : backward_ends_)[cells_.of(a.stage, a.microbatch)] = end;
    const StageIndex user = forward ? a.stage + 1 : a.stage - 1;
    if (map_.has(user)) call(map_.rank_of(user));
  }

  /// False if the rank waits for another's result.
  bool step(PipelineRank rank, const Action& action) {
    if (action.overlaps_next) return step_pair(rank, action, lists_[rank][next_[rank] + 1]);
    if (computes(action.kind)) {
      const double begin = std::max(free_[rank], input_time(action));
      if (begin == kNever) return false;
      run(rank, action, begin, begin + durations_[action.stage].of(action.kind));
    }
    ++next_[rank];
    return true;
  }

  /// Both begin when the inputs of both are there, and end together.
  bool step_pair(PipelineRank rank, const Action& forward, const Action& backward) {
    const double begin = std::max({free_[rank], input_time(forward), input_time(backward)});
    if (begin == kNever) return false;
    const Durations &f = durations_[forward.stage], &b = durations_[backward.stage];
    const double end = begin + f.forward + b.of(backward.kind) - f.hidden_forward - b.hidden_input;
    run(rank, forward, begin, end);
    run(rank, backward, begin, end);
    next_[rank] += 2;
    return true;
  }

  void run(PipelineRank rank, const Action& action, double begin, double end) {
    free_[rank] = end;
    finish(action, end);
    timeline_.ranks[rank].push_back({action, begin, end});
  }

  const ActionLists& lists_;
  const StageMap& map_;
  const IndexedVector<StageIndex, Durations>& durations_;
  Cells cells_;
  IndexedVector<PipelineRank, std::size_t> next_;
  IndexedVector<PipelineRank, double> free_;
  std::vector<double> forward_ends_, backward_ends_;  ///< by cell
  IndexedVector<PipelineRank, bool> called_;
  std::vector<PipelineRank> calls_;  ///< the ranks to run, each once
  Timeline timeline_;
};

double busy(const std::vector<TimedAction>& rank) {
  double sum = 0;
  for (const TimedAction& timed : rank)
    if (!timed.action.overlaps_next) sum += timed.end - timed.begin;
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
  double first = kNever;
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

double Timeline::bubble_of(PipelineRank rank) const {
  return 1 - busy(ranks[rank]) / (ranks[rank].back().end - ranks[rank].front().begin);
}

Timeline simulate(const ActionLists& lists, const StageMap& map, const Durations& durations) {
  return simulate(lists, map, IndexedVector<StageIndex, Durations>(map.stages(), durations));
}

Timeline simulate(const ActionLists& lists, const StageMap& map,
                  const IndexedVector<StageIndex, Durations>& durations) {
  TESSERA_EXPECT(std::cmp_equal(durations.size(), map.stages()), "durations of {} stages, not {}",
                 durations.size(), map.stages());
  return Simulation(lists, map, durations).run();
}

}  // namespace tessera::schedule
