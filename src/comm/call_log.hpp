// SPDX-License-Identifier: Apache-2.0
// The last calls of this process, kept where the watchdog and the other ranks of the node can read
// them without MPI.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/comm/hooks.hpp"

namespace tessera::comm {

std::string_view name_of(Op op) noexcept;

/// "all_reduce(sum, f32, 1024 elements)"
std::string title(const CallInfo& info);
/// "all_reduce(sum, f32, 1024 elements), call 17"
std::string describe(const CallInfo& info);

enum class CallState : std::uint8_t { issued, waited_for, done, failed };

/// What stays the same about a call.
struct CallSubject {
  CallInfo info;
  std::int32_t rank, size;
  Members members;
  /// of a group: the one member with which it exchanges; -1: several, or no group
  std::int32_t peer;
  char axis[36];
};
using CallWords = std::array<std::uint64_t, sizeof(CallSubject) / sizeof(std::uint64_t)>;

/// One line of the log. Written by one thread, read by anyone: `ticket` is the last thing set and
/// the first one checked, and checked again after the rest has been read. All is atomic since a
/// line may be used again while it is read; every store but the first releases, so that whoever
/// reads something new finds the old ticket gone.
struct CallRecord {
  std::atomic<std::uint64_t> ticket;
  std::atomic<CallState> state;
  std::atomic<std::int64_t> issued_ns, waited_ns, done_ns;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<CallWords>> subject;  ///< a CallSubject
};

/// One process's log. All zeros is an empty one, so a fresh mapping needs no initialisation.
struct CallPage {
  static constexpr std::uint64_t kRecords = 1024;
  std::atomic<std::uint64_t> calls;
  std::atomic<std::int64_t> step, heartbeat_ns;
  /// when this process's watchdog looked last; 0 = it has none, or tells of what it saw
  std::atomic<std::int64_t> looked_ns;
  std::int32_t world_rank;
  /// 1 + the world rank that this process has been waiting for too long; 0 = none
  std::atomic<std::int32_t> awaited;
  std::atomic<bool> has_failed;
  char failure[1024];  ///< once has_failed: the first cause, see failure.hpp
  /// Watchdog::at(): characters, then zeros
  std::array<std::atomic<std::uint64_t>, 6> place;
  std::atomic<std::int64_t> traces_begun_ns,
      traces_ns;  ///< on the node's first page: begin and end of the last ones
  CallRecord records[kRecords];
};

/// This process's watchdog looks now.
void note_look() noexcept;
/// As long as this lives, the watchdog is in a function that may take long: it does not look, but
/// its process runs.
class NoLook {
 public:
  NoLook() noexcept;
  ~NoLook() { note_look(); }
  NoLook(const NoLook&) = delete;
  NoLook& operator=(const NoLook&) = delete;
};
/// For how long the process of this page has not run (it is stopped, swapped out, or blocked in its
/// GPU's driver): what the page says of its calls may be over since. 0 where it runs.
double standstill_seconds(const CallPage& page, std::int64_t now) noexcept;

/// See Watchdog::at(). A place that is being changed may be read as parts of two.
void note_place(CallPage& page, std::string_view unit, std::string_view pass) noexcept;
std::string place_of(const CallPage& page);
struct UnitAndPass {
  std::string unit, pass;
};
UnitAndPass unit_and_pass(const CallPage& page);

/// A watchdog that has not looked for this long, though it looks each second, stands still.
/// Machines pause for seconds, so that a hang which is reported earlier does not know it.
constexpr std::int64_t kStandstill_ns = 5'000'000'000;

/// Nanoseconds of the monotonic clock (the same for all processes of a node).
std::int64_t now_ns() noexcept;
double seconds_between(std::int64_t from_ns, std::int64_t to_ns) noexcept;

/// This process's page, and the swap to one that others can read as well (old ones stay mapped:
/// calls may be in progress).
CallPage& call_page() noexcept;
void use_call_page(CallPage* page) noexcept;

/// A call from its issue to its end, of which all hooks are informed. `in`: what it reads.
class LoggedCall {
 public:
  LoggedCall() = default;
  LoggedCall(const CallInfo& info, int rank, int size, std::string_view axis, Members members = {},
             int peer = -1, std::span<const Buffer> in = {});
  void waited_for() noexcept;
  void resumed() noexcept;  ///< the caller continues, and so does the call
  void done() noexcept { ended(CallEnd::done); }
  void failed() noexcept { ended(CallEnd::failed); }

 private:
  void ended(CallEnd end) noexcept;
  template <class Tell>
  void tell(Tell tell) const noexcept;
  std::uint64_t ticket_ = 0;  ///< 0: none
};

/// The hook that keeps this process's page.
std::shared_ptr<Hook> make_call_recorder();

/// A consistent copy of one record.
struct CallView {
  std::uint64_t ticket;
  CallState state;
  std::int64_t issued_ns, waited_ns, done_ns;
  CallInfo info;
  int rank, size, peer;
  Members members;
  std::string axis;
};
/// The newest `limit` calls of a page, oldest first.
std::vector<CallView> recent(const CallPage& page, std::size_t limit);
/// "tp 1/2: all_reduce(sum, f32, 1024 elements), call 17: waited for since 3.1 s"
std::string describe(const CallView& view, std::int64_t now);

}  // namespace tessera::comm
