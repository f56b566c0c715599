// SPDX-License-Identifier: Apache-2.0
// One call that moves data, from its check to its end on a stream.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator.hpp"

namespace tessera::sim::nccl {

struct Operation {
  Kind kind{};
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int peer = -1;  ///< root of a broadcast; peer of a transfer
  std::shared_ptr<Communicator> communicator{};
  cudaStream_t stream = nullptr;
  /// from 1: among the collectives, or the transfers to or from this peer
  std::uint64_t number = 0;
  std::vector<Position> positions{};  ///< by rank; of a transfer only that of its peer is set

  std::size_t in_bytes() const;
  std::size_t out_bytes() const;
  Call call() const;
  /// "ncclAllReduce 3"
  std::string title() const;
};

/// Returns ncclSuccess, or tells what is wrong: types, ranks, pointers, overlaps of input and
/// output.
ncclResult_t check(const Operation& operation);
/// Tells of two operations that are launched together and of which one writes what the other uses.
ncclResult_t check_together(const std::vector<Operation>& operations);

}  // namespace tessera::sim::nccl
