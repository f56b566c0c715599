// SPDX-License-Identifier: Apache-2.0
// One interface for every exchange between ranks; five back ends: MPI, NCCL, self, recording,
// strict.
//
// Rules (NCCL's, kept by all back ends so that what works here works there):
//  - A communicator is a queue: its operations run in the order in which they were issued, and
//  every member issues the
//    same operations with the same dtypes and counts in the same order.
//  - Across communicators all ranks issue in an order that is a projection of one global order.
//  - send and recv only between group_start() and group_end(); all transfers of a group progress
//  together.
//  - Nothing is buffered: an operation may not complete before its peers have joined it.
//  - A Buffer given to an operation may be neither read nor written until its Request was waited
//  for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/comm/buffer.hpp"

namespace tessera::comm {

enum class Op : std::uint8_t { sum, max, min };

/// Completion of one operation or group. On the host wait() returns when the data is there; on a
/// device it makes the caller's current compute stream wait for the communication stream and
/// returns at once. Destroying a request that was not waited for waits. Movable, empty after
/// wait().
class Request {
 public:
  class State {
   public:
    virtual ~State() = default;
    virtual void
    wait() = 0;  ///< throws Error(ExitCode::communication) naming call, code, rank, axis
    virtual bool test() = 0;  ///< true once complete; also drives progress
  };
  Request() = default;
  explicit Request(std::unique_ptr<State> state) : state_(std::move(state)) {}
  Request(Request&&) noexcept = default;
  Request& operator=(Request&& other) {
    wait();
    state_ = std::move(other.state_);
    return *this;
  }
  ~Request();
  void wait();
  bool test();
  bool pending() const { return state_ != nullptr; }
  /// Forgets the operation, which is not going to run: it was a part of a graph that is not made.
  void abandon() noexcept { state_.reset(); }

 private:
  std::unique_ptr<State> state_;
};

/// Bytes and calls that passed through a communicator since it was made (for metrics and the
/// planner).
struct Traffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< payload that this rank sent, as the operation's algorithm-free size
  /// time that wait() and blocking operations held the caller, or the stream on which it computes
  /// (collect_device_waits())
  double exposed_seconds = 0;
};

/// A group of ranks along one axis of the mesh.
/// Sums of floating-point numbers on the host are deterministic: added in float32 (float64 for f64)
/// over a fixed binary tree of rank numbers (the halves of [0, n) at the largest power of two below
/// n), rounded once.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& axis() const { return axis_; }
  virtual std::string_view backend() const = 0;  ///< "mpi", "nccl", "self", "recording", "strict"

  /// inout[i] = op over ranks of inout[i].
  [[nodiscard]] virtual Request all_reduce(Buffer inout, Op op = Op::sum) = 0;
  /// out (size * in.count elements) = the ranks' `in`, in rank order. In place when in.data is this
  /// rank's part of out.
  [[nodiscard]] virtual Request all_gather(Buffer in, Buffer out) = 0;
  /// out (in.count / size elements) = this rank's part of the element-wise sum of `in`. May be in
  /// place in that part.
  [[nodiscard]] virtual Request reduce_scatter(Buffer in, Buffer out, Op op = Op::sum) = 0;
  [[nodiscard]] virtual Request broadcast(Buffer inout, int root) = 0;
  /// Rank r's part s of `in` goes to part r of rank s's `out`; equal parts.
  [[nodiscard]] virtual Request all_to_all(Buffer in, Buffer out) = 0;
  /// The same with counts (elements) for each peer; parts are stored one after the other.
  [[nodiscard]] virtual Request all_to_all_v(Buffer in, std::span<const std::int64_t> in_counts,
                                             Buffer out,
                                             std::span<const std::int64_t> out_counts) = 0;
  /// Transfers with single peers; only between group_start() and group_end(), which returns the
  /// group's completion. Between the same two ranks, transfers of one group match in the order of
  /// their calls.
  virtual void group_start() = 0;
  virtual void send(Buffer in, int peer) = 0;
  virtual void recv(Buffer out, int peer) = 0;
  [[nodiscard]] virtual Request group_end() = 0;
  /// Blocks until every member arrived.
  virtual void barrier() = 0;

  /// Collective: members with the same color form a new communicator ordered by (key, rank); axis
  /// names it in messages. A negative color takes part and gets null.
  virtual std::unique_ptr<Communicator> split(int color, int key, const std::string& axis) = 0;

  /// Device memory for buffers of this communicator's collectives, which peers then read and write
  /// without copies on the way; null where the back end has none, or what computes is captured for
  /// a graph. Collective: all members ask for the same sizes, and let go of them, in the same
  /// order. The memory is used again once its last owner is gone, so that what computes has to be
  /// behind its last use then. `make_room` is called where the device has too little that is free.
  /// Throws Error(environment) where that does not help.
  virtual std::shared_ptr<void> registered_memory(std::size_t /*bytes*/,
                                                  const std::function<void()>& /*make_room*/ = {}) {
    return nullptr;
  }

  /// The same ranks in host memory: itself, or the companion of a communicator that moves device
  /// memory.
  virtual Communicator& host() { return *this; }

  virtual const Traffic& traffic() const { return traffic_; }

 protected:
  Communicator(int rank, int size, std::string axis)
      : rank_(rank), size_(size), axis_(std::move(axis)) {}
  int rank_;
  int size_;
  std::string axis_;
  Traffic traffic_;
};

/// A communicator of one rank; every operation is a copy or nothing. Degree-1 axes get it, so no
/// algorithm has a special case.
std::unique_ptr<Communicator> make_self_communicator(const std::string& axis);

/// A communicator without traffic: rank `rank` of `size` counts calls and bytes. Results are those
/// of ranks that all give what this one gives, but for sums, which are left as they are. Transfers
/// and unequal parts arrive in host memory as zeros. For rehearsing one rank of a job that is not
/// running.
std::unique_ptr<Communicator> make_recording_communicator(int rank, int size,
                                                          const std::string& axis);

/// Blocking scalars, for control flow: each rank gets the sum (max, min) over ranks. Doubles are
/// added in rank order.
double all_reduce_scalar(Communicator& communicator, double value, Op op = Op::sum);
std::int64_t all_reduce_scalar(Communicator& communicator, std::int64_t value, Op op = Op::sum);
/// Blocking: root's bytes arrive everywhere (length included).
std::string broadcast_string(Communicator& communicator, const std::string& value, int root);
/// Blocking: every rank's string, in rank order, on every rank.
std::vector<std::string> all_gather_strings(Communicator& communicator, const std::string& value);
/// Blocking: rank 0's `take` gets every rank's string, in rank order; rank 0 holds one at a time.
void gather_strings(Communicator& communicator, const std::string& value,
                    const std::function<void(const std::string&)>& take);

}  // namespace tessera::comm
