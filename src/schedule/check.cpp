// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <bit>
#include <optional>

#include "cells.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::schedule {
namespace {

/// The ranks that may be able to move, in the order of walks over all ranks, again and again.
/// Finding the next one looks at 64 ranks at a time.
class Turns {
 public:
  explicit Turns(int ranks) : words_(static_cast<std::size_t>(ranks) / 64 + 1, 0) {
    for (const PipelineRank rank : IndexRange<PipelineRank>(ranks)) add(rank);
  }
  void add(PipelineRank rank) {
    words_[rank.position() / 64] |= std::uint64_t{1} << rank.position() % 64;
  }
  /// Takes the first one after the rank that was taken last; nothing if there is none.
  std::optional<PipelineRank> take() {
    std::uint64_t below = (std::uint64_t{1} << after_ % 64) - 1;  // taken in the next walk
    for (std::size_t turn = 0; turn <= words_.size(); ++turn, below = 0) {
      const std::size_t at = (after_ / 64 + turn) % words_.size();
      const std::uint64_t word = words_[at] & ~below;
      if (word == 0) continue;
      words_[at] &= ~(word & -word);
      after_ = at * 64 + static_cast<std::size_t>(std::countr_zero(word)) + 1;
      return PipelineRank(static_cast<int>(after_ - 1));
    }
    return {};
  }

 private:
  std::vector<std::uint64_t> words_;  ///< a bit for each rank, and spare ones
  std::size_t after_ = 0;             ///< one past the rank that was taken last
};

/// All ranks at once, each at one position of its list; a transfer happens when both of its ends
/// are reached.
class Rehearsal {
 public:
  Rehearsal(const ActionLists& lists, const StageMap& map, int microbatches)
      : lists_(lists),
        map_(map),
        microbatches_(microbatches),
        cells_(lists, map.stages()),
        next_(lists.size(), 0),
        done_(cells_.size(), 0),
        turns_(lists.size()) {}

  std::string run() {
    if (lists_.size() != map_.ranks())
      return fmt::format("{} lists of actions for {} pipeline ranks", lists_.size(), map_.ranks());
    for (auto rank = turns_.take(); rank && fault_.empty(); rank = turns_.take()) advance(*rank);
    if (!fault_.empty()) return fault_;
    for (const PipelineRank rank : lists_.indexes())
      if (const Action* action = at(rank)) return waiting(rank, *action);
    return missing();
  }

 private:
  const Action* at(PipelineRank rank) const {
    return next_[rank] < lists_[rank].size() ? &lists_[rank][next_[rank]] : nullptr;
  }
  static unsigned bit(ActionKind kind) { return 1u << static_cast<unsigned>(kind); }
  bool has(ActionKind kind, const Action& a) const { return has(kind, a.stage, a); }
  bool has(ActionKind kind, StageIndex stage, const Action& a) const {
    return done_[cells_.of(stage, a.microbatch)] & bit(kind);
  }
  bool backward_done(StageIndex stage, const Action& a) const {
    return has(ActionKind::backward, stage, a) || has(ActionKind::input_gradient, stage, a);
  }

  bool advance(PipelineRank rank) {
    const Action* action = at(rank);
    if (!action) return false;
    if (!map_.has(action->stage) || map_.rank_of(action->stage) != rank)
      return fail(rank, *action, "the stage is not on this rank");
    if (action->microbatch.value() < 0 || action->microbatch.value() >= microbatches_)
      return fail(rank, *action, fmt::format("there are {} microbatches", microbatches_));
    switch (action->kind) {
      case ActionKind::send_forward:
        return transfer(rank, *action, ActionKind::recv_forward, 1);
      case ActionKind::send_backward:
        return transfer(rank, *action, ActionKind::recv_backward, -1);
      case ActionKind::recv_forward:
      case ActionKind::recv_backward:
        return false;  // a receive moves with its send
      default:
        return compute(rank, *action);
    }
  }

  /// What comes from a neighbouring stage: received, or computed on this rank.
  bool arrived(const Action& a, StageIndex from, ActionKind receive) const {
    if (!map_.same_rank(a.stage, from)) return has(receive, a);
    return receive == ActionKind::recv_forward ? has(ActionKind::forward, from, a)
                                               : backward_done(from, a);
  }

  bool compute(PipelineRank rank, const Action& a) {
    if (a.overlaps_next) {
      const Action* beside =
          next_[rank] + 1 < lists_[rank].size() ? &lists_[rank][next_[rank] + 1] : nullptr;
      if (!beside || !is_backward(beside->kind) || beside->stage == a.stage)
        return fail(rank, a, "no backward of another stage follows that it could run beside");
      if (const char* why = obstacle(*beside)) return fail(rank, *beside, why);
    }
    if (const char* why = obstacle(a)) return fail(rank, a, why);
    return finish(rank, a);
  }

  /// What a computation lacks; null: nothing.
  const char* obstacle(const Action& a) const {
    if (a.kind == ActionKind::weight_gradient)
      return has(ActionKind::input_gradient, a) ? nullptr : "its I was not done";
    if (a.kind == ActionKind::forward) {
      const bool ready =
          a.stage == map_.first() || arrived(a, a.stage - 1, ActionKind::recv_forward);
      return ready ? nullptr : "its input has not arrived";
    }
    if (!has(ActionKind::forward, a)) return "its F was not done";
    if (backward_done(a.stage, a)) return "it was done before";
    const bool ready = a.stage == map_.last() || arrived(a, a.stage + 1, ActionKind::recv_backward);
    return ready ? nullptr : "the gradient of its output has not arrived";
  }

  bool transfer(PipelineRank rank, const Action& a, ActionKind receive, int direction) {
    const bool made = receive == ActionKind::recv_forward ? has(ActionKind::forward, a)
                                                          : backward_done(a.stage, a);
    if (!made) return fail(rank, a, "nothing was computed yet");
    const StageIndex to = a.stage + direction;
    if (!map_.has(to)) return fail(rank, a, "no stage follows");
    const PipelineRank peer = map_.rank_of(to);
    const Action* other = at(peer);
    if (!other || !(*other == Action{receive, to, a.microbatch})) return false;
    return finish(rank, a) && finish(peer, *other);
  }

  bool finish(PipelineRank rank, const Action& a) {
    std::uint8_t& done = done_[cells_.of(a.stage, a.microbatch)];
    if (done & bit(a.kind)) return fail(rank, a, "it was done before");
    done |= static_cast<std::uint8_t>(bit(a.kind));
    ++next_[rank];
    turns_.add(rank);
    call_sender(rank);
    return true;
  }

  /// The rank that sends what this one receives next may have waited for it.
  void call_sender(PipelineRank rank) {
    const Action* next = at(rank);
    if (!next ||
        (next->kind != ActionKind::recv_forward && next->kind != ActionKind::recv_backward))
      return;
    const StageIndex from =
        next->kind == ActionKind::recv_forward ? next->stage - 1 : next->stage + 1;
    if (map_.has(from)) turns_.add(map_.rank_of(from));
  }

  bool fail(PipelineRank rank, const Action& a, const std::string& why) {
    fault_ = fmt::format("pipeline rank {}, {} ({}): {}", rank, place_of(rank), to_string(a), why);
    return false;
  }

  /// Of the rank's next action, among computations alone: transfers are not the user's.
  std::string place_of(PipelineRank rank) const {
    const auto next = lists_[rank].begin() + static_cast<std::ptrdiff_t>(next_[rank]);
    const auto before =
        std::count_if(lists_[rank].begin(), next, [](const Action& a) { return computes(a.kind); });
    return fmt::format("computation {}", before + 1);
  }

  std::string waiting(PipelineRank rank, const Action& action) const {
    std::string text = fmt::format("deadlock: pipeline rank {} waits at {} ({})", rank,
                                   place_of(rank), to_string(action));
    for (const PipelineRank other : lists_.indexes())
      if (const Action* a = at(other); a && other != rank)
        text += fmt::format(", rank {} at {}", other, to_string(*a));
    return text;
  }

  std::string missing() const {
    for (const StageIndex stage : map_.each_stage())
      for (const MicrobatchIndex m : IndexRange<MicrobatchIndex>(microbatches_)) {
        const Action forward{ActionKind::forward, stage, m},
            weight{ActionKind::weight_gradient, stage, m};
        if (!has(ActionKind::forward, forward)) return "never done: " + to_string(forward);
        if (!backward_done(stage, forward))
          return "never done: " + to_string({ActionKind::backward, stage, m});
        if (has(ActionKind::input_gradient, forward) && !has(ActionKind::weight_gradient, forward))
          return "never done: " + to_string(weight);
      }
    return {};
  }

  const ActionLists& lists_;
  const StageMap& map_;
  int microbatches_;
  Cells cells_;
  IndexedVector<PipelineRank, std::size_t> next_;
  std::vector<std::uint8_t> done_;  ///< by cell, a bit for each kind of action
  Turns turns_;
  std::string fault_;
};

}  // namespace

std::string find_fault(const ActionLists& lists, const StageMap& map, int microbatches) {
  return Rehearsal(lists, map, microbatches).run();
}

}  // namespace tessera::schedule
