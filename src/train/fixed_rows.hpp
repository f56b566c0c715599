// SPDX-License-Identifier: Apache-2.0
// Rows of a fixed number for experts, where the job has a capacity
// (parallelism.expert_parallel_capacity_factor), on all stages of this rank.
#pragma once

#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/parallel/stages.hpp"

namespace tessera::train {

class FixedRows {
 public:
  /// The stages must outlive this.
  FixedRows(parallel::Stages& stages, const mesh::DeviceMesh& mesh);

  /// Of the passes to come; else they send as many as are chosen.
  void send(bool fixed);
  /// How often they did not fit in a step on this rank. The host waits for the device.
  std::int64_t overflows() const;
  /// Forgets gradients and figures of such a step.
  void forget_step();

 private:
  parallel::Stages& stages_;
  std::vector<parallel::StageExperts*> experts_;
};

}  // namespace tessera::train
