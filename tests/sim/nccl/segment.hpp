// SPDX-License-Identifier: Apache-2.0
// What the members of one communicator share: a memory file without a name, which goes with its
// last user even after a crash. All zeros is a fresh one.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "bell.hpp"

namespace tessera::sim::nccl {

inline constexpr int kMaxRanks = 64;

enum class Kind : std::int32_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  send,
  recv
};

/// One process's device as the others see it. Devices of one node are the same where their numbers
/// are: a process that sees one GPU shares it with all others that do.
struct Member {
  std::int32_t pid, arena_fd, device,
      ranks;                       ///< ranks: how many this member was told that there are
  std::uint64_t arena_bytes, ids;  ///< ids: hash of all unique ids that it was given
  char node[64];
};

/// Where an operation stands among all operations that a rank shares with another one, over all
/// communicators: at one number between first and last (a group's operations have no order).
/// `previous` names the one before. All zeros: unknown.
struct Position {
  std::uint32_t epoch, first, last;
  char previous[88];
};

/// A member's call. `in` and `out` are bytes from the beginning of its arena; `peer` is the root of
/// a broadcast. `in_window` and `out_window` are bytes from the beginning of the window in which
/// the buffer is, or -1.
struct Call {
  Kind kind;
  ncclDataType_t type;
  ncclRedOp_t op;
  std::int32_t peer;
  std::uint64_t count, number, in, out;
  std::int64_t in_window, out_window;
};

/// The one transfer that a rank has under way to another one: the sender posts it, the receiver
/// takes it.
struct Cell {
  std::atomic<std::uint64_t> posted, taken;  ///< numbers of transfers, from 1
  ncclDataType_t type;
  std::uint64_t count, in;
  Position position;
};

/// What a member does on the host: a call that all members make together.
struct HostCall {
  enum class Kind : std::int32_t { none, init, split, finalize, window } kind;
  std::int32_t color, key;
  ncclUniqueId child;
  std::uint64_t window_bytes;
};

/// What a member knows of its order with another one, when it joins.
struct OrderState {
  std::uint32_t epoch;
  bool unknown;
};

enum class Joined : std::uint32_t { no, coming, yes };

struct Slot {
  Bell bell;
  std::atomic<Joined> joined;
  Member member;
  std::array<OrderState, kMaxRanks> order;  ///< by the other member
  /// by the other member; what connection.cpp's ranks have come to
  std::array<std::atomic<std::uint32_t>, kMaxRanks> connecting;
  HostCall host_call;
  std::atomic<std::uint64_t> entered;  ///< number of the collective that it is in, or was in last
  Call call;
  std::array<Position, kMaxRanks> positions;  ///< of `call`, by the other member
  std::array<Cell, kMaxRanks> cells;          ///< by receiver
};

struct Segment {
  std::uint64_t cookie[2];
  std::atomic<std::uint64_t> device_arrivals, host_arrivals;
  enum class Broken : std::uint32_t { no, written, yes };
  std::atomic<Broken> broken;  ///< a rule was broken: no member goes on
  char why[1024];
  std::atomic<std::uint32_t> aborted;  ///< members that have aborted it
  std::array<Slot, kMaxRanks> slots;
};

/// A mapping of a segment, with its own descriptor where this process made it.
class SharedSegment {
 public:
  /// Throws std::runtime_error, as do all functions here.
  static SharedSegment make();
  static SharedSegment open(const ncclUniqueId& id);
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&&) = delete;
  ~SharedSegment();
  Segment& operator*() const { return *segment_; }
  Segment* operator->() const { return segment_; }
  /// The id by which processes of this user open it, for as long as this process lives and has not
  /// called forget().
  ncclUniqueId id() const;
  /// Keeps the descriptor open beyond this object's life.
  void keep_open();
  /// Closes the descriptor of a segment that keep_open() was called for in this process; else does
  /// nothing.
  static void forget(const ncclUniqueId& id);

 private:
  SharedSegment(int fd, Segment* segment) : fd_(fd), segment_(segment) {}
  int fd_;
  Segment* segment_;
};

}  // namespace tessera::sim::nccl
