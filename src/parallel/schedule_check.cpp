#include <fmt/format.h>

#include <set>
#include <tuple>

#include "tessera/parallel/schedule.hpp"

namespace tessera::parallel {
namespace {

using Kind = ActionKind;

/// All ranks at once, each at one position of its list; a transfer happens when both of its ends are reached.
class Rehearsal {
 public:
  Rehearsal(const std::vector<ActionList>& lists, int microbatches)
      : lists_(lists), microbatches_(microbatches), next_(lists.size(), 0) {}

  std::string run() {
    bool moved = true;
    while (moved && fault_.empty()) {
      moved = false;
      for (std::size_t rank = 0; rank < lists_.size() && fault_.empty(); ++rank) moved |= advance(rank);
    }
    if (!fault_.empty()) return fault_;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank)
      if (const Action* action = at(rank)) return waiting(rank, *action);
    return missing();
  }

 private:
  using Done = std::tuple<Kind, int, int>;

  const Action* at(std::size_t rank) const { return next_[rank] < lists_[rank].size() ? &lists_[rank][next_[rank]] : nullptr; }
  bool has(Kind kind, int stage, int microbatch) const { return done_.contains({kind, stage, microbatch}); }
  bool last(int stage) const { return stage + 1 == static_cast<int>(lists_.size()); }

  bool advance(std::size_t rank) {
    const Action* action = at(rank);
    if (!action) return false;
    switch (action->kind) {
      case Kind::forward:
      case Kind::backward: return compute(rank, *action);
      case Kind::send_forward: return transfer(rank, *action, Kind::recv_forward, 1);
      case Kind::send_backward: return transfer(rank, *action, Kind::recv_backward, -1);
      default: return false;  // a receive moves with its send
    }
  }

  bool compute(std::size_t rank, const Action& a) {
    const bool forward = a.kind == Kind::forward;
    const bool ready = forward ? a.stage == 0 || has(Kind::recv_forward, a.stage, a.microbatch)
                               : has(Kind::forward, a.stage, a.microbatch) &&
                                     (last(a.stage) || has(Kind::recv_backward, a.stage, a.microbatch));
    if (!ready) return fail(rank, a, "its input is not there");
    return finish(rank, a);
  }

  bool transfer(std::size_t rank, const Action& a, Kind receive, int direction) {
    if (!has(receive == Kind::recv_forward ? Kind::forward : Kind::backward, a.stage, a.microbatch))
      return fail(rank, a, "nothing was computed yet");
    const std::size_t peer = rank + static_cast<std::size_t>(direction);
    const Action* other = peer < lists_.size() ? at(peer) : nullptr;
    if (!other || !(*other == Action{receive, a.stage + direction, a.microbatch})) return false;
    return finish(rank, a) && finish(peer, *other);
  }

  bool finish(std::size_t rank, const Action& a) {
    if (!done_.insert({a.kind, a.stage, a.microbatch}).second) return fail(rank, a, "it was done before");
    ++next_[rank];
    return true;
  }

  bool fail(std::size_t rank, const Action& a, const char* why) {
    fault_ = fmt::format("pipeline rank {}, action {} ({}): {}", rank, next_[rank], to_string(a), why);
    return false;
  }

  std::string waiting(std::size_t rank, const Action& action) const {
    std::string text = fmt::format("deadlock: pipeline rank {} waits at action {} ({})", rank, next_[rank], to_string(action));
    for (std::size_t other = 0; other < lists_.size(); ++other)
      if (const Action* a = at(other); a && other != rank) text += fmt::format(", rank {} at {}", other, to_string(*a));
    return text;
  }

  std::string missing() const {
    for (int stage = 0; stage < static_cast<int>(lists_.size()); ++stage)
      for (int m = 0; m < microbatches_; ++m)
        for (const Kind kind : {Kind::forward, Kind::backward})
          if (!has(kind, stage, m)) return "never done: " + to_string({kind, stage, m});
    return {};
  }

  const std::vector<ActionList>& lists_;
  int microbatches_;
  std::vector<std::size_t> next_;
  std::set<Done> done_;
  std::string fault_;
};

}  // namespace

std::string find_fault(const std::vector<ActionList>& lists, int microbatches) { return Rehearsal(lists, microbatches).run(); }

}  // namespace tessera::parallel
