// SPDX-License-Identifier: Apache-2.0
#include "meeting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "call_log.hpp"
#include "peers.hpp"
#include "rendezvous.hpp"

namespace tessera::comm {
namespace {

/// Two calls that differ only in what this pair exchanges.
bool same_kind(const Note& mine, const Note& theirs) {
  return mine.info.call == theirs.info.call &&
         (mine.info.call == Call::group || mine.info.call == Call::all_to_all_v);
}

std::string list(std::span<const TransferNote> transfers) {
  std::vector<std::string> words;
  for (const TransferNote& t : transfers)
    words.push_back(fmt::format("{} x {}", t.count, name_of(t.dtype)));
  return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

std::string describe_note(const Note& note, int peer) {
  std::string text = describe(note.info);
  if (note.info.call == Call::group)
    text += fmt::format(" (to rank {}: {}; from it: {})", peer, list(note.sent()),
                        list(note.received()));
  if (note.to_peer || note.from_peer)
    text += fmt::format(" ({} to and {} from rank {})", note.to_peer, note.from_peer, peer);
  return text;
}

}  // namespace

bool same_call(const Note& mine, const Note& theirs) {
  CallInfo a = mine.info, b = theirs.info;
  if (a.call == Call::all_to_all_v && b.call == Call::all_to_all_v) a.count = b.count;
  return a == b && mine.to_peer == theirs.from_peer && mine.from_peer == theirs.to_peer;
}

bool same_transfers(const Note& mine, const Note& theirs) {
  return theirs.info.call == Call::group && std::ranges::equal(mine.sent(), theirs.received()) &&
         std::ranges::equal(mine.received(), theirs.sent());
}

std::string missing_report(const Meeting& meeting, const Place& place, const CallInfo& info) {
  std::vector<int> missing;
  for (const int rank : meeting.missing) missing.push_back(world_rank_of(place.comm, rank));
  std::string text = fmt::format(
      "{} on axis {} (rank {} of {}) waited {:g} s for {} {}, all ranks must issue their "
      "operations in one "
      "global order",
      describe(info), place.axis, place.rank, place.size, strict_timeout_seconds(),
      missing.size() == 1 ? "world rank" : "world ranks", fmt::join(missing, ", "));
  for (int rank : meeting.missing)
    if (const auto late = meeting.late.find(rank); late != meeting.late.end())
      text += "; " + late->second;
  return text;
}

std::string failure_report(const Meeting& meeting, const Place& place, const CallInfo& info) {
  return fmt::format("{} on axis {} cannot complete, because another rank has failed: {}",
                     describe(info), place.axis, meeting.failure);
}

std::string disagreement(const Meeting& meeting, const Place& place, const CallInfo& info) {
  std::map<std::string, std::set<int>> callers;  // world ranks
  const int self = world_rank_of(place.comm, place.rank);
  for (std::size_t i = 0; i < meeting.peers.size(); ++i) {
    const int peer = meeting.peers[i];
    const bool missing =
        std::find(meeting.missing.begin(), meeting.missing.end(), peer) != meeting.missing.end();
    if (missing) continue;
    const int other = world_rank_of(place.comm, peer);
    const bool pairwise = !meeting.agrees(meeting.mine[i], meeting.theirs[i]) &&
                          same_kind(meeting.mine[i], meeting.theirs[i]);
    callers[pairwise ? describe_note(meeting.mine[i], other) : describe(info)].insert(self);
    callers[pairwise ? describe_note(meeting.theirs[i], self) : describe(meeting.theirs[i].info)]
        .insert(other);
  }
  std::string text = fmt::format("the ranks of axis {} disagree", place.axis);
  for (const auto& [call, ranks] : callers)
    text +=
        fmt::format("{} {} {}: {}", &call == &callers.begin()->first ? ":" : ";",
                    ranks.size() == 1 ? "world rank" : "world ranks", fmt::join(ranks, ", "), call);
  return text + "; every member must issue the same operations in the same order";
}

}  // namespace tessera::comm
