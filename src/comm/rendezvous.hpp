// SPDX-License-Identifier: Apache-2.0
// NCCL's rules made checkable on the host: before an operation runs, its members meet and compare
// what they called.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "call_log.hpp"
#include "mpi_call.hpp"
#include "tessera/comm/buffer.hpp"

namespace tessera::comm {

/// One send or receive of a group.
struct Transfer {
  bool sends;
  int peer;
  Buffer buffer;
};
/// The one peer of all these transfers; -1 where they have several.
inline int only_peer(std::span<const Transfer> transfers) {
  const auto same = [&](const Transfer& t) { return t.peer == transfers.front().peer; };
  return !transfers.empty() && std::ranges::all_of(transfers, same) ? transfers.front().peer : -1;
}
/// What those that send read.
inline std::vector<Buffer> sent_of(std::span<const Transfer> transfers) {
  std::vector<Buffer> sent;
  for (const Transfer& t : transfers)
    if (t.sends) sent.push_back(t.buffer);
  return sent;
}
/// A transfer to and one from each member; what is empty is omitted, on both sides.
inline std::vector<Transfer> pairwise(const Buffer& in, std::span<const std::int64_t> in_counts,
                                      const Buffer& out, std::span<const std::int64_t> out_counts) {
  std::vector<Transfer> transfers;
  std::int64_t in_first = 0, out_first = 0;
  for (std::size_t r = 0; r < in_counts.size(); ++r) {
    const int peer = static_cast<int>(r);
    if (in_counts[r] > 0) transfers.push_back({true, peer, in.part(in_first, in_counts[r])});
    if (out_counts[r] > 0) transfers.push_back({false, peer, out.part(out_first, out_counts[r])});
    in_first += in_counts[r];
    out_first += out_counts[r];
  }
  return transfers;
}

/// all_to_all_v: what this rank sends to and expects from each member; empty for the other calls.
struct PairCounts {
  std::span<const std::int64_t> in, out;
};

/// Whether relaxed communicators meet as well (debug.check_collectives).
bool check_collectives() noexcept;
/// How long a member waits for the others: TESSERA_STRICT_TIMEOUT_SECONDS, 20 by default, or what a
/// Watchdog::Patience allows where that is longer.
double strict_timeout_seconds();

struct Meeting;

class Rendezvous {
 public:
  explicit Rendezvous(const Place& place) : place_(place) {}
  /// Returns once every member has called this with an equal `info`; else throws
  /// Error(communication) that names the ranks that differ and what each called, or, after
  /// strict_timeout_seconds(), the ranks that are missing and what they do instead.
  void meet_all(const CallInfo& info, const PairCounts& counts);
  /// The same for the ranks that `transfers` name: what one sends, the other must receive in the
  /// same group.
  void meet_peers(const CallInfo& info, std::span<const Transfer> transfers);
  /// After a failure the members are out of step for good, and every further meeting fails at once.
  void give_up(const std::string& why) { broken_ = why; }
  bool broken() const { return !broken_.empty(); }

 private:
  void expect_whole() const;
  void hold(std::unique_ptr<Meeting> meeting, const CallInfo& info);
  const Place& place_;
  std::string broken_;
};

}  // namespace tessera::comm
