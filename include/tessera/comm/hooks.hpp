// SPDX-License-Identifier: Apache-2.0
// What observes every call of every communicator of this process: recorders, logs and checks are
// hooks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

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
  split,
  graph,  ///< a launch of several calls that were captured
  register_memory
};
/// "all_reduce", "group", ...
std::string_view name_of(Call call) noexcept;

/// What one member asked of a communicator. Trivially copyable: it travels between ranks when
/// collectives are compared.
struct CallInfo {
  /// number of this call on its communicator, from 1; groups have their own numbers
  std::uint64_t sequence = 0;
  std::int64_t count = 0;  ///< elements that this rank put in; of a group: its transfers; of a
                           ///< graph: its calls
  std::int32_t root = -1;
  Call call = Call::barrier;
  DType dtype = DType::u8;
  Op op = Op::sum;
  std::uint8_t unused = 0;  ///< keeps the bytes of the struct defined
  bool operator==(const CallInfo&) const = default;
};

/// World ranks of a communicator's members, if they are at equal distances, as those of an axis of
/// the mesh are: member i is first + i * stride. The first one alone is known where they do not
/// (stride 0).
struct Members {
  std::int32_t first = -1;  ///< -1: unknown
  std::int32_t stride = 0;
};

/// A call, as a member makes it.
struct HookedCall {
  std::uint64_t ticket;  ///< of this call in this process: rises with each, and names it to the
                         ///< other functions
  CallInfo info;
  std::string_view axis;  ///< of the communicator
  int rank, size;         ///< this rank's number in the communicator, and its number of members
  Members members;
  int peer;  ///< of a group: the one member with which it exchanges; -1: several, or no group
  std::span<const Buffer> in;  ///< what the call reads, on the host or on a device
};

/// How a call has ended. On a device, that is seen later: by the watchdog, or by the next call.
enum class CallEnd : std::uint8_t { done, failed };

/// Called on the thread that makes the call, waits for it, or watches it; several threads may call
/// at a time. Nothing here may communicate.
class Hook {
 public:
  virtual ~Hook() = default;
  /// Before anything is sent. An exception goes to the caller, and the call is not made.
  virtual void before(const HookedCall&) {}
  /// The call holds its caller, or on a device its stream, from now on; and it does so no more, but
  /// has not ended.
  virtual void waits(std::uint64_t /*ticket*/) noexcept {}
  virtual void goes_on(std::uint64_t /*ticket*/) noexcept {}
  virtual void after(std::uint64_t /*ticket*/, CallEnd) noexcept {}
  /// The caller's thread begins a pass of a unit, as Watchdog::at() is told; without a name, it
  /// ends the last one.
  virtual void comes_to(std::string_view /*unit*/, std::string_view /*pass*/) noexcept {}
  /// Before communicators are aborted, or the whole job is.
  virtual void before_abort(std::string_view /*why*/) noexcept {}
};

/// Is called as long as it is registered. The log of calls, which the watchdog and the traces of
/// hangs read, is a hook that is always there. It comes last: a call that another hook has refused
/// is not logged.
void add_hook(std::shared_ptr<Hook> hook);
void remove_hook(const std::shared_ptr<Hook>& hook);

}  // namespace tessera::comm
