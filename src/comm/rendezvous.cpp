// SPDX-License-Identifier: Apache-2.0
#include "rendezvous.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "meeting.hpp"
#include "peers.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/comm/world.hpp"
#include "watch.hpp"

namespace tessera::comm {
namespace {

constexpr int kTag = 0;
/// for whom this rank waits, and whether that one can come
constexpr std::int64_t kLookEvery_ns = 200'000'000;

std::atomic<bool> checks_enabled{false};

/// A rank that waits in vain as well may give up a moment earlier than this one: so its activity is
/// taken down before that, and after every rank that is stuck has said for whom it waits.
void note_activities(Meeting& meeting, const Place& place) {
  for (std::size_t i = 0; i < meeting.peers.size(); ++i)
    if (meeting.receiving[i] != MPI_REQUEST_NULL)
      meeting.late[meeting.peers[i]] = chain_from(world_rank_of(place.comm, meeting.peers[i]));
}

/// Tells everybody for whom this rank waits: the first that has not come. What one of those said
/// about its failure, if it cannot come any more.
std::string look_for_the_late(const Meeting& meeting, const Place& place) {
  bool first = true;
  for (std::size_t i = 0; i < meeting.peers.size(); ++i) {
    if (meeting.receiving[i] == MPI_REQUEST_NULL) continue;
    const int rank = world_rank_of(place.comm, meeting.peers[i]);
    if (std::exchange(first, false)) await(rank);
    if (std::string failure = failure_of(rank); !failure.empty()) return failure;
  }
  return {};
}

/// Takes what has arrived. One by one: MPI_Testall completes none before all are there, and who is
/// late would not show.
bool receive_all(Meeting& meeting, const Place& place) {
  bool all = true;
  for (MPI_Request& request : meeting.receiving) {
    int received = request == MPI_REQUEST_NULL;
    if (!received) check_mpi(MPI_Test(&request, &received, MPI_STATUS_IGNORE), "MPI_Irecv", place);
    all &= received != 0;
  }
  return all;
}

/// Exchanges the notes; members that have not come when the deadline passes are left in `missing`.
void exchange(Meeting& meeting, const Place& place) {
  const std::size_t n = meeting.peers.size();
  meeting.theirs.resize(n);
  meeting.sending.assign(n, MPI_REQUEST_NULL);
  meeting.receiving.assign(n, MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < n; ++i) {
    check_mpi(MPI_Irecv(&meeting.theirs[i], sizeof(Note), MPI_BYTE, meeting.peers[i], kTag,
                        place.comm, &meeting.receiving[i]),
              "MPI_Irecv", place);
    check_mpi(MPI_Isend(&meeting.mine[i], static_cast<int>(meeting.mine[i].bytes()), MPI_BYTE,
                        meeting.peers[i], kTag, place.comm, &meeting.sending[i]),
              "MPI_Isend", place);
  }
  const auto timeout = static_cast<std::int64_t>(strict_timeout_seconds() * 1e9);
  const std::int64_t deadline = now_ns() + timeout;
  bool received = false;
  int sent = 0;
  std::int64_t look = now_ns() + std::min<std::int64_t>(kLookEvery_ns, timeout / 8);
  for (std::int64_t now = now_ns(); !(received && sent) && now < deadline; now = now_ns()) {
    if (now > look) {
      meeting.failure = look_for_the_late(meeting, place);
      if (!meeting.failure.empty()) return;
      look = now + kLookEvery_ns;
    }
    if (meeting.late.empty() && now > deadline - timeout / 4) note_activities(meeting, place);
    received = receive_all(meeting, place);
    check_mpi(MPI_Testall(static_cast<int>(n), meeting.sending.data(), &sent, MPI_STATUSES_IGNORE),
              "MPI_Isend", place);
  }
  if (!received && meeting.late.empty())
    note_activities(meeting, place);  // this rank had no time for it
}

/// Ends the transfers with members that never came.
void close(Meeting& meeting) {
  for (std::size_t i = 0; i < meeting.peers.size(); ++i) {
    int received = meeting.receiving[i] == MPI_REQUEST_NULL;
    if (!received) MPI_Test(&meeting.receiving[i], &received, MPI_STATUS_IGNORE);
    if (!received) {
      meeting.missing.push_back(meeting.peers[i]);
      MPI_Cancel(&meeting.receiving[i]);
      MPI_Wait(&meeting.receiving[i], MPI_STATUS_IGNORE);
    }
    if (meeting.sending[i] != MPI_REQUEST_NULL) MPI_Request_free(&meeting.sending[i]);
  }
}

Note group_note(const CallInfo& info, std::span<const Transfer> transfers, int peer,
                const Place& place) {
  Note note{.info = info};
  for (const bool sends : {true, false}) {
    for (const Transfer& t : transfers) {
      if (t.peer != peer || t.sends != sends) continue;
      require(static_cast<std::size_t>(note.sends + note.receives) < kMostTransfers,
              ExitCode::communication,
              "a group on axis {} has more than {} transfers with rank {}; use several groups",
              place.axis, kMostTransfers, peer);
      note.transfers[note.sends + note.receives] = {t.buffer.count, t.buffer.dtype, {}};
      ++(sends ? note.sends : note.receives);
    }
  }
  return note;
}

}  // namespace

double strict_timeout_seconds() {
  const char* text = std::getenv("TESSERA_STRICT_TIMEOUT_SECONDS");
  char* end = nullptr;
  const bool given = text != nullptr && *text != '\0';
  const double value = given ? std::strtod(text, &end) : 20;
  require(value > 0 && value <= 1e6 && (!given || *end == '\0'), ExitCode::usage,
          "TESSERA_STRICT_TIMEOUT_SECONDS={} is no number of seconds from 0 to 1e6",
          given ? text : "");
  return std::max(value, std::chrono::duration<double>(patience()).count());
}

bool check_collectives() noexcept { return checks_enabled.load(std::memory_order_relaxed); }
void set_check_collectives(bool enabled) { checks_enabled = enabled; }

void Rendezvous::expect_whole() const {
  require(broken_.empty(), ExitCode::communication,
          "axis {} cannot be used after its first failure: {}", place_.axis, broken_);
}

void Rendezvous::hold(std::unique_ptr<Meeting> meeting, const CallInfo& info) {
  exchange(*meeting, place_);
  close(*meeting);
  const auto met = [&](std::size_t i) {
    return std::find(meeting->missing.begin(), meeting->missing.end(), meeting->peers[i]) ==
           meeting->missing.end();
  };
  bool same = true;
  for (std::size_t i = 0; i < meeting->peers.size(); ++i)
    same &= !met(i) || meeting->agrees(meeting->mine[i], meeting->theirs[i]);
  if (meeting->missing.empty()) await(-1);
  if (same && meeting->missing.empty()) return;
  const std::string message = !same                       ? disagreement(*meeting, place_, info)
                              : !meeting->failure.empty() ? failure_report(*meeting, place_, info)
                                                          : missing_report(*meeting, place_, info);
  if (same && !meeting->failure.empty())
    pass_failure_on(meeting->failure);
  else
    note_failure(message);
  keep_for_ever(std::move(meeting));  // a note to a missing member may still be read from here
  broken_ = message;
  throw Error(ExitCode::communication, message);
}

void Rendezvous::meet_all(const CallInfo& info, const PairCounts& counts) {
  expect_whole();
  auto meeting = std::make_unique<Meeting>(same_call);
  for (int r = 0; r < place_.size; ++r) {
    if (r == place_.rank) continue;
    const auto index = static_cast<std::size_t>(r);
    const bool pairs = !counts.in.empty();
    meeting->invite(r, {.info = info,
                        .to_peer = pairs ? counts.in[index] : 0,
                        .from_peer = pairs ? counts.out[index] : 0});
  }
  hold(std::move(meeting), info);
}

void Rendezvous::meet_peers(const CallInfo& info, std::span<const Transfer> transfers) {
  expect_whole();
  auto meeting = std::make_unique<Meeting>(same_transfers);
  std::set<int> peers;
  for (const Transfer& t : transfers) peers.insert(t.peer);
  for (int peer : peers) meeting->invite(peer, group_note(info, transfers, peer, place_));
  hold(std::move(meeting), info);
}

}  // namespace tessera::comm
