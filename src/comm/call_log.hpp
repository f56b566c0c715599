// The last calls of this process, kept where the watchdog and the other ranks of the node can read them without MPI.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

enum class Call : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  all_to_all_v,
  group,
  barrier,
  split
};
std::string_view name_of(Call call) noexcept;
std::string_view name_of(Op op) noexcept;

/// What one member asked of a communicator. Trivially copyable: it travels between ranks when collectives are compared.
struct CallInfo {
  std::uint64_t sequence = 0;  ///< number of this call on its communicator, from 1
  std::int64_t count = 0;      ///< elements that this rank put in
  std::int32_t root = -1;
  Call call = Call::barrier;
  DType dtype = DType::u8;
  Op op = Op::sum;
  std::uint8_t unused = 0;  ///< keeps the bytes of the struct defined
  bool operator==(const CallInfo&) const = default;
};
/// "all_reduce(sum, f32, 1024 elements)"
std::string title(const CallInfo& info);
/// "all_reduce(sum, f32, 1024 elements), call 17"
std::string describe(const CallInfo& info);

enum class CallState : std::uint8_t { issued, waited_for, done, failed };

/// World ranks of a communicator's members, where they lie at equal distances as those of an axis of the mesh do:
/// member i is first + i * stride. The first one alone is known where they do not (stride 0).
struct Members {
  std::int32_t first = -1;  ///< -1: unknown
  std::int32_t stride = 0;
};

/// What stays the same about a call.
struct CallSubject {
  CallInfo info;
  std::int32_t rank, size;
  Members members;
  std::int32_t peer;  ///< of a group: the one member with which it exchanges; -1: several, or no group
  char axis[36];
};
using CallWords = std::array<std::uint64_t, sizeof(CallSubject) / sizeof(std::uint64_t)>;

/// One line of the log. Written by one thread, read by anyone: `ticket` is the last thing set and the first one
/// checked, and checked again after the rest has been read. All is atomic since a line may be used again while it is
/// read; every store but the first releases, so that whoever reads something new finds the old ticket gone.
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
  std::int32_t world_rank;
  std::atomic<std::int32_t> awaited;  ///< 1 + the world rank that this process has been waiting for too long; 0 = none
  std::atomic<bool> has_failed;
  char failure[1024];  ///< once has_failed: the first cause, see failure.hpp
  CallRecord records[kRecords];
};

/// Nanoseconds of the monotonic clock (the same for all processes of a node).
std::int64_t now_ns() noexcept;
double seconds_between(std::int64_t from_ns, std::int64_t to_ns) noexcept;

/// This process's page, and the swap to one that others can read as well (old ones stay mapped: calls may be under
/// way).
CallPage& call_page() noexcept;
void use_call_page(CallPage* page) noexcept;

/// A call from its issue to its end.
class LoggedCall {
 public:
  LoggedCall() = default;
  LoggedCall(const CallInfo& info, int rank, int size, std::string_view axis, Members members = {},
             int peer = -1) noexcept;
  void waited_for() noexcept;
  void resumed() noexcept;  ///< the caller goes on, the call does too
  void done() noexcept { ended(CallState::done); }
  void failed() noexcept { ended(CallState::failed); }

 private:
  void ended(CallState state) noexcept;
  bool mine() const noexcept { return record_ && record_->ticket.load(std::memory_order_relaxed) == ticket_; }
  CallRecord* record_ = nullptr;
  std::uint64_t ticket_ = 0;
};

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
