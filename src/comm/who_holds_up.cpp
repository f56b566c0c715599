// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "tessera/comm/call_trace.hpp"

namespace tessera::comm {
namespace {

/// The communicator of an axis that a rank belongs to, by its first member.
using Key = std::pair<std::string, int>;

/// A call in which `rank` waits.
struct Wait {
  int rank;
  const TracedCall* call;
};

std::string kind_of(const TracedCall& call) {
  return call.group ? "group" : call.name.substr(0, call.name.find('('));
}

/// "all_gather 1204 of tp (f32, 8 elements)"
std::string numbered(const TracedCall& call) {
  const std::size_t detail = call.group ? call.name.npos : call.name.find('(');
  return fmt::format("{} {} of {}{}", kind_of(call), call.number, call.axis,
                     detail == call.name.npos ? "" : " " + call.name.substr(detail));
}

/// Whether members may call so together. Only all_to_all_v takes another count from each of them,
/// and only graphs have as many calls as each of them captured: stages of a pipeline differ.
bool fit(const TracedCall& a, const TracedCall& b) {
  const auto both = [&](std::string_view words) {
    return a.name.starts_with(words) && b.name.starts_with(words);
  };
  return a.name == b.name || both("all_to_all_v(") || both("graph of ");
}

class Hang {
 public:
  explicit Hang(std::span<const CallTrace> traces) {
    for (const CallTrace& trace : traces) traces_[trace.rank] = &trace;
    for (const CallTrace& trace : traces)
      for (const TracedCall& call : trace.calls)
        members_[{call.axis, call.first}][call.rank] = trace.rank;
    for (const CallTrace& trace : traces) follow(trace);
  }

  std::vector<std::string> lines() const {
    if (!disagreements_.empty()) return {disagreements_.begin(), disagreements_.end()};
    std::map<int, std::string> told;
    const auto tell = [&](const auto& held_up_by, const char* what) {
      for (const auto& [rank, waits] : held_up_by)
        if (!waiting_.contains(rank)) told[rank] = culprit(rank, what, waits);
    };
    tell(missed_by_, "not entered");
    if (told.empty()) tell(begun_by_, "begun but not ended");
    if (!waiting_.empty()) add_stopped(told);
    std::vector<std::string> lines;
    for (auto& [rank, line] : told) lines.push_back(std::move(line));
    if (lines.empty() && !missed_by_.empty())
      lines.push_back(circle_from(missed_by_.begin()->first));
    if (lines.empty() && !waiting_.empty()) lines.push_back(nobody(waiting_.begin()->first));
    return lines;
  }

 private:
  bool stands_still(int rank) const { return traces_.at(rank)->standstill_seconds > 0; }

  /// None of a process that does not run: it may have waited for a moment, just before.
  const TracedCall* waiting_call(const CallTrace& trace) const {
    if (stands_still(trace.rank)) return nullptr;
    const auto held =
        std::ranges::find_if(trace.calls, [](const TracedCall& c) { return c.state == "waiting"; });
    return held == trace.calls.end() ? nullptr : &*held;
  }

  void follow(const CallTrace& trace) {
    const TracedCall* call = waiting_call(trace);
    if (!call) return;
    waiting_[trace.rank] = call;
    for (int member = 0; member < call->size; ++member)
      if (member != call->rank && (!call->group || call->peer == member))
        look_at(trace.rank, *call, member);
  }

  void look_at(int rank, const TracedCall& call, int member) {
    const std::optional<int> other = world_rank(call, member);
    if (!other) return;
    const TracedCall* theirs = counterpart(*other, call);
    if (!theirs)
      missed_by_[*other].push_back({rank, &call});
    else if (!call.group && theirs->number == call.number && !fit(call, *theirs))
      disagreements_.insert(disagreement(call, std::minmax(rank, *other)));
    else if ((theirs->state == "issued" || (theirs->state == "waiting" && stands_still(*other))) &&
             (call.group || theirs->number == call.number))
      begun_by_[*other].push_back({rank, &call});
  }

  std::optional<int> world_rank(const TracedCall& call, int member) const {
    if (call.first >= 0 && call.stride > 0) return call.first + member * call.stride;
    const auto& members = members_.at({call.axis, call.first});
    const auto found = members.find(member);
    return found == members.end() ? std::nullopt : std::optional(found->second);
  }

  /// The other member's part in the call, or a later call, where it has come so far.
  const TracedCall* counterpart(int other, const TracedCall& call) const {
    const auto trace = traces_.find(other);
    if (trace == traces_.end()) return nullptr;
    for (const TracedCall& c : trace->second->calls) {
      if (c.axis != call.axis || c.first != call.first || c.group != call.group) continue;
      if (call.group ? c.peer == call.rank && c.state != "done" : c.number >= call.number)
        return &c;
    }
    return nullptr;
  }

  std::string named(int rank) const {
    const auto trace = traces_.find(rank);
    return trace == traces_.end() ? fmt::format("rank {}", rank)
                                  : fmt::format("rank {} (node {})", rank, trace->second->host);
  }

  std::string disagreement(const TracedCall& call, std::pair<int, int> ranks) const {
    const auto what = [&](int rank) { return counterpart(rank, call)->name; };
    return fmt::format("ranks differ in call {} of {}: {} calls {}, {} calls {}", call.number,
                       call.axis, named(ranks.first), what(ranks.first), named(ranks.second),
                       what(ranks.second));
  }

  std::string culprit(int rank, const char* what, const std::vector<Wait>& waits) const {
    const Wait& longest =
        *std::ranges::max_element(waits, {}, [](const Wait& w) { return w.call->seconds; });
    return fmt::format("{} has {} {}, in which {} has waited for {:.1f} s; {}", named(rank), what,
                       numbered(*longest.call), named(longest.rank), longest.call->seconds,
                       last_seen(rank));
  }

  /// They may have entered all calls in which others wait, but cannot send what these need.
  void add_stopped(std::map<int, std::string>& told) const {
    for (const auto& [rank, trace] : traces_)
      if (stands_still(rank) && !told.contains(rank))
        told[rank] = fmt::format("{} is stopped; {}", named(rank), last_seen(rank));
  }

  std::string last_seen(int rank) const {
    const auto found = traces_.find(rank);
    if (found == traces_.end())
      return "it left no trace: look for its end in the launcher's messages";
    const CallTrace& trace = *found->second;
    if (!trace.failure.empty()) return "it has failed: " + trace.failure;
    const std::string step = trace.step == 0 ? std::string("before the first step")
                                             : fmt::format("at step {}", trace.step);
    const std::string place = trace.place.empty() ? "" : ", " + trace.place;
    const std::string still =
        trace.standstill_seconds > 0
            ? fmt::format("; its process has not run for {:.1f} s", trace.standstill_seconds)
            : std::string();
    if (trace.calls.empty())
      return fmt::format("last seen {}{}{}; it had called nothing", step, place, still);
    const TracedCall& last = trace.calls.back();
    return fmt::format("last seen {}{}{}; its last call was {}, {} {:.1f} s before", step, place,
                       still, numbered(last), last.state, last.seconds);
  }

  /// Of ranks that wait for each other, or of the last of a chain, which waits for nobody's entry.
  std::string circle_from(int rank) const {
    std::vector<int> path;
    while (std::ranges::find(path, rank) == path.end()) {
      path.push_back(rank);
      const std::optional<int> next = waited_for(rank);
      if (!next) return nobody(rank);
      rank = *next;
    }
    path.erase(path.begin(), std::ranges::find(path, rank));
    std::string text = "ranks wait for each other, as they call in different orders:";
    for (const int r : path) text += fmt::format(" {} in {};", named(r), numbered(*waiting_.at(r)));
    text.pop_back();
    return text;
  }

  std::optional<int> waited_for(int rank) const {
    for (const auto& [other, waits] : missed_by_)
      if (std::ranges::any_of(waits, [&](const Wait& w) { return w.rank == rank; })) return other;
    return std::nullopt;
  }

  std::string nobody(int rank) const {
    const TracedCall& call = *waiting_.at(rank);
    return fmt::format(
        "all members whose traces are here have entered {}, in which {} has waited for {:.1f} s; "
        "look at "
        "the network, and at ranks without a trace",
        numbered(call), named(rank), call.seconds);
  }

  std::map<int, const CallTrace*> traces_;
  std::map<Key, std::map<int, int>> members_;  ///< world ranks, by communicator and number in it
  std::map<int, const TracedCall*> waiting_;
  std::map<int, std::vector<Wait>> missed_by_;  ///< by the rank that is missing
  /// by the rank that has begun the call without waiting for its end
  std::map<int, std::vector<Wait>> begun_by_;
  std::set<std::string> disagreements_;
};

}  // namespace

std::vector<std::string> who_holds_up(std::span<const CallTrace> traces) {
  return Hang(traces).lines();
}

}  // namespace tessera::comm
