// SPDX-License-Identifier: Apache-2.0
// Lets faults happen as debug.inject_faults says.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/stages.hpp"
#include "tessera/plan/injected_fault.hpp"

namespace tessera::train {

class WrongCalls;

class InjectedFaults {
 public:
  /// Those that allocate memory do so on `device`.
  explicit InjectedFaults(std::vector<plan::InjectedFault> faults, at::Device device = at::kCPU);
  ~InjectedFaults();

  /// What the mesh has to put around its communicators for entries that act in calls; nothing if
  /// there are none. This object must outlive them.
  mesh::DeviceMesh::Decorate decorate();

  /// Before the first call of `step`.
  void arm(std::int64_t step, int rank);
  /// When the gradients of `step` are there; each entry once in the life of this process, but
  /// those of a slow rank in every later step.
  void strike(std::int64_t step, int rank, parallel::Stages& stages);

 private:
  at::Device device_;
  std::vector<plan::InjectedFault> entries_;
  std::unique_ptr<WrongCalls> calls_;
};

}  // namespace tessera::train
