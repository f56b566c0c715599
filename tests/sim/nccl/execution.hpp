// SPDX-License-Identifier: Apache-2.0
// What operations do when their stream has come to them.
#pragma once

#include <vector>

#include "operation.hpp"

namespace tessera::sim::nccl {

/// The operations of one launch on one communicator. It counts as completed when this object goes,
/// whether it ran or the stream dropped it after an error.
struct Launch {
  std::vector<Operation> operations;
  std::uint64_t number = 0;  ///< from 1 on its communicator; 0: not launched
  Launch() = default;
  Launch(const Launch&) = delete;
  ~Launch();
  Communicator& communicator() const { return *operations.front().communicator; }
};

/// Waits for the launch's turn, fills the outputs with 0xFF, runs the collectives in the order of
/// their calls and after them all transfers together. Returns when they are done, or once the
/// communicator has been aborted; then the outputs hold anything. Called with device memory open to
/// the thread.
void execute(const Launch& launch);

/// One collective. False: it cannot go on, and the communicator knows why or was aborted.
///
/// Every member reads the inputs of the others where they lie, after all have entered and agree on
/// what they called, and leaves after all have read. An all-reduce is a reduce-scatter into each
/// member's own part of the output, and a gather of these parts.
bool run_collective(const Operation& operation);

/// Transfers of one launch. Between two ranks they go one after the other, with different ranks all
/// at once. Nothing is buffered: a send ends when its receiver has copied the bytes.
bool run_transfers(const std::vector<const Operation*>& operations);

}  // namespace tessera::sim::nccl
