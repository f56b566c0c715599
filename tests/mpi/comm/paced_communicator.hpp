// SPDX-License-Identifier: Apache-2.0
// A simulated wire: any host communicator, with the time that a slower network would need.
//
// Nothing of it uses a core: completion is a point of time, and waiting sleeps until then. So two
// cores can show what overlaps with what on many ranks: cells that sleep for their computing time,
// and this for their communication.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"

namespace tessera::test {

/// Each operation ends at: the time when its last member issued it + steps x latency + bytes /
/// bandwidth, where steps and bytes are those of a ring (all_gather: size - 1 steps, (size - 1) x
/// in; all_reduce twice that of its reduce_scatter; a group: one step and the larger of what this
/// rank sends and what it receives).
struct Wire {
  double latency_seconds = 10e-6;
  double bytes_per_second = 1e9;
  bool queued = true;  ///< an operation starts when the one before it on this communicator has
                       ///< ended, as on NCCL
};

class PacedCommunicator final : public comm::Communicator {
 public:
  /// Collective over the members of `inner`, which must move host memory. Members learn from each
  /// other when each of them issued an operation; for that their clocks must be the same
  /// (CLOCK_MONOTONIC of one node).
  PacedCommunicator(std::unique_ptr<comm::Communicator> inner, const Wire& wire);
  ~PacedCommunicator() override;

  std::string_view backend() const override { return inner_->backend(); }
  comm::Request all_reduce(comm::Buffer inout, comm::Op op) override;
  comm::Request all_gather(comm::Buffer in, comm::Buffer out) override;
  comm::Request reduce_scatter(comm::Buffer in, comm::Buffer out, comm::Op op) override;
  comm::Request broadcast(comm::Buffer inout, int root) override;
  comm::Request all_to_all(comm::Buffer in, comm::Buffer out) override;
  comm::Request all_to_all_v(comm::Buffer in, std::span<const std::int64_t> in_counts,
                             comm::Buffer out, std::span<const std::int64_t> out_counts) override;
  void group_start() override;
  void send(comm::Buffer in, int peer) override;
  void recv(comm::Buffer out, int peer) override;
  comm::Request group_end() override;
  void barrier() override;
  /// What this rank has given to the wire so far, as a ring moves it.
  double wire_bytes() const { return wire_bytes_; }
  /// The parts have the same wire.
  std::unique_ptr<comm::Communicator> split(int color, int key, const std::string& axis) override;

 private:
  struct Operation;
  struct Driver;
  class Waiting;
  struct Transfer {
    bool sends;
    comm::Buffer buffer;
    int peer;
  };
  struct Cost {
    int steps;
    double bytes;
  };
  comm::Request collective(Cost cost, const std::function<comm::Request()>& issue);
  comm::Request start(std::size_t stamps, Cost cost, const std::function<void(Operation&)>& issue);
  comm::Request exchange_stamps(const std::vector<Transfer>& transfers, Operation& operation);
  void add(const Transfer& transfer);
  /// What a ring moves of `whole`, the buffer of all members.
  double share(const comm::Buffer& whole) const {
    return static_cast<double>(whole.bytes()) * (size_ - 1) / size_;
  }
  bool advance();  ///< gives operations that all members have joined their ends; are some left?

  std::unique_ptr<comm::Communicator> inner_,
      stamps_;  ///< the second tells the members when each of them issued
  Wire wire_;
  std::deque<std::shared_ptr<Operation>> pending_;
  std::optional<std::vector<Transfer>> group_;
  std::int64_t free_at_ns_ = 0;
  double wire_bytes_ = 0;
};

/// For DeviceMesh: every communicator of more than one rank becomes a paced one.
std::function<std::unique_ptr<comm::Communicator>(std::unique_ptr<comm::Communicator>)> paced(
    const Wire& wire);

}  // namespace tessera::test
