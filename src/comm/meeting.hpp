// SPDX-License-Identifier: Apache-2.0
// A meeting of members of a communicator: what they tell each other before a call, and what is said
// when they do not agree.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "mpi_call.hpp"
#include "tessera/comm/hooks.hpp"

namespace tessera::comm {

/// with one peer in one group; keeps a note in MPI's eager range
inline constexpr std::size_t kMostTransfers = 128;

struct TransferNote {
  std::int64_t count;
  DType dtype;
  std::uint8_t unused[7];
  bool operator==(const TransferNote& other) const {
    return count == other.count && dtype == other.dtype;
  }
};

/// What one member tells another. Only the first sends + receives transfers travel.
struct Note {
  CallInfo info;
  std::int64_t to_peer = 0, from_peer = 0;  ///< elements in all_to_all_v
  std::int32_t sends = 0, receives = 0;
  TransferNote transfers[kMostTransfers] = {};
  std::size_t bytes() const {
    return offsetof(Note, transfers) +
           static_cast<std::size_t>(sends + receives) * sizeof(TransferNote);
  }
  std::span<const TransferNote> sent() const {
    return {transfers, static_cast<std::size_t>(sends)};
  }
  std::span<const TransferNote> received() const {
    return {transfers + sends, static_cast<std::size_t>(receives)};
  }
};

/// Notes to and from some members, and what makes two of them agree.
struct Meeting {
  using Agrees = bool (*)(const Note& mine, const Note& theirs);
  explicit Meeting(Agrees agrees) : agrees(agrees) {}
  Agrees agrees;
  std::vector<int> peers;
  std::vector<Note> mine, theirs;
  std::vector<MPI_Request> sending, receiving;
  std::vector<int> missing;
  /// what members that kept the others waiting were doing shortly before the deadline
  std::map<int, std::string> late;
  std::string failure;  ///< why one of them cannot come any more

  void invite(int peer, const Note& note) {
    peers.push_back(peer);
    mine.push_back(note);
  }
};

/// Whether two members called the same, and whether what one sends is what the other receives.
bool same_call(const Note& mine, const Note& theirs);
bool same_transfers(const Note& mine, const Note& theirs);

/// Who has not come, and what they do instead.
std::string missing_report(const Meeting& meeting, const Place& place, const CallInfo& info);
/// Why somebody cannot come any more.
std::string failure_report(const Meeting& meeting, const Place& place, const CallInfo& info);
/// What this rank and each that disagrees with it called; equal calls of several ranks are listed
/// once.
std::string disagreement(const Meeting& meeting, const Place& place, const CallInfo& info);

}  // namespace tessera::comm
