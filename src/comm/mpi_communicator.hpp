// SPDX-License-Identifier: Apache-2.0
// Host memory over MPI, by itself or under NCCL's rules.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mpi_call.hpp"
#include "mpi_operation.hpp"
#include "rendezvous.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// carried: for another communicator, which logs its operations and compares what members called.
enum class Rules : std::uint8_t { relaxed, strict, carried };

/// Operations are exchanges between pairs (counts without limit, in place where the interface says
/// so), apart from broadcast and barrier, which MPI's own trees do better. Small all-reduces are an
/// all-gather and a local sum.
class MpiCommunicator final : public Communicator {
 public:
  /// Owns `comm`.
  MpiCommunicator(MpiHandle comm, const std::string& axis, Rules rules);
  ~MpiCommunicator() override;

  std::string_view backend() const override { return rules_ == Rules::strict ? "strict" : "mpi"; }
  Request all_reduce(Buffer inout, Op op) override;
  Request all_gather(Buffer in, Buffer out) override;
  Request reduce_scatter(Buffer in, Buffer out, Op op) override;
  Request broadcast(Buffer inout, int root) override;
  Request all_to_all(Buffer in, Buffer out) override;
  Request all_to_all_v(Buffer in, std::span<const std::int64_t> in_counts, Buffer out,
                       std::span<const std::int64_t> out_counts) override;
  void group_start() override;
  void send(Buffer in, int peer) override;
  void recv(Buffer out, int peer) override;
  Request group_end() override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int color, int key, const std::string& axis) override;

  Rules rules() const { return rules_; }
  const Place& place() const { return place_; }

 private:
  using Operation = std::unique_ptr<MpiOperation>;
  Operation begin(const CallInfo& info, const Buffer& in, std::size_t sent_bytes,
                  const PairCounts& counts = {});
  Request launch(Operation operation);
  bool compares() const;
  LoggedCall logged(const CallInfo& info, int peer = -1, std::span<const Buffer> in = {}) const;
  CallInfo info(Call call, const Buffer& buffer, Op op = Op::sum, int root = -1);
  int tag() const;
  void all_reduce_integers(MpiOperation& operation, Buffer inout, Op op);
  void all_reduce_small(MpiOperation& operation, Buffer inout, Op op);
  void all_reduce_large(MpiOperation& operation, Buffer inout, Op op);
  void all_gather_many(MpiOperation& operation, Buffer in, Buffer out);
  void add_transfer(bool sends, Buffer buffer, int peer);

  MpiHandle handle_;
  Place place_;
  Rules rules_;
  Rendezvous rendezvous_;
  std::uint64_t sequence_ = 0;  ///< collectives issued: the same number on every member
  std::uint64_t groups_ = 0;
  std::optional<std::vector<Transfer>> group_;
};

}  // namespace tessera::comm
