// SPDX-License-Identifier: Apache-2.0
// How an operation on device memory is done over MPI: a sequence of pieces, each of which passes
// through pinned memory. Device files only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpi_communicator.hpp"
#include "pinned.hpp"

namespace tessera::comm {

struct StagedCopy {
  const void* from;
  void* to;
  std::size_t bytes;
};

/// A part of an operation: copies from the device, an exchange of host memory, copies to the
/// device.
struct StagedPiece {
  Pinned memory;
  std::vector<StagedCopy> before, after;
  std::function<Request(MpiCommunicator&)> exchange;
};

/// Makes its pieces one after the other, so that a large message needs the memory of few pieces.
/// All members cut a message in the same way.
struct StagedPlan {
  std::int64_t pieces = 0;
  std::function<StagedPiece(std::int64_t)> piece;
};

/// What members cut messages alike by.
struct StagedWay {
  bool direct;  ///< MPI takes device pointers
  /// of pinned memory that a piece may take; of a group, four of its transfers
  std::size_t piece_bytes;
};
struct StagedMembers {
  int rank, size;
  StagedWay way;
};

StagedPlan plan_all_reduce(const StagedMembers& members, const Buffer& inout, Op op);
StagedPlan plan_all_gather(const StagedMembers& members, const Buffer& in, const Buffer& out);
StagedPlan plan_reduce_scatter(const StagedMembers& members, const Buffer& in, const Buffer& out,
                               Op op);
StagedPlan plan_broadcast(const StagedMembers& members, const Buffer& inout, int root);
StagedPlan plan_all_to_all(const StagedMembers& members, const Buffer& in, const Buffer& out);
/// Also all_to_all_v: a transfer to and one from each member.
StagedPlan plan_group(const StagedMembers& members, std::vector<Transfer> transfers);

// For an MPI that takes device pointers: one piece without pinned memory. Sums are made on the
// host, so reductions have no such plan.
StagedPlan plan_direct_all_gather(const StagedMembers& members, const Buffer& in,
                                  const Buffer& out);
StagedPlan plan_direct_broadcast(const Buffer& inout, int root);
StagedPlan plan_direct_group(std::vector<Transfer> transfers);

}  // namespace tessera::comm
