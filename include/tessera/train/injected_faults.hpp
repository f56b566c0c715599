// SPDX-License-Identifier: Apache-2.0
// debug.inject_faults: faults on purpose, to see what a job does about them before they come by
// themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/stages.hpp"

namespace tessera::train {

class WrongCalls;

class InjectedFaults {
 public:
  /// Each of `entries` is STEP:KIND:RANK or STEP:KIND:RANK:CALL (steps and calls from 1). Without
  /// CALL, when the gradients of the step are there: nan (a gradient of that rank is not a number),
  /// flip (a bit of one of its parameters is wrong from then on), spike (all its parameters grow 64
  /// times, so that the loss of the next step jumps), freeze (it stops without a word), die (it is
  /// gone), memory (it allocates more than there is on `device`). At that collective call of the
  /// step, the first if CALL is left out: skip (leaves it out), shape (one element too few), order
  /// (enters another communicator first); freeze, die and memory with CALL. Throws Error(usage) for
  /// anything else, and for a rank that is not there.
  InjectedFaults(const std::vector<std::string>& entries, int world, at::Device device = at::kCPU);
  ~InjectedFaults();

  /// What the mesh has to put around its communicators for entries that strike calls; nothing if
  /// there are none. This object must outlive them.
  mesh::DeviceMesh::Decorate decorate();

  /// Before the first call of `step`.
  void arm(std::int64_t step, int rank);
  /// When the gradients of `step` are there; each entry once in the life of this process.
  void strike(std::int64_t step, int rank, parallel::Stages& stages);

 private:
  enum class Kind : std::uint8_t { nan, flip, spike, freeze, die, memory, skip, shape, order };
  struct Entry {
    std::int64_t step;
    Kind kind;
    int rank;
    std::int64_t call;  ///< 0 = when the gradients are there
  };
  at::Device device_;
  std::vector<Entry> entries_;
  std::unique_ptr<WrongCalls> calls_;
};

}  // namespace tessera::train
