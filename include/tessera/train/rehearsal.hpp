// SPDX-License-Identifier: Apache-2.0
// The memory of a rank of a job that is not running: found by the code that would run.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <string>

#include "tessera/parallel/memory_kinds.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

struct RehearsedMemory {
  std::int64_t peak_bytes = 0;  ///< the most that LibTorch's allocator had handed out
  /// What took them: as seen between the passes of units, where all else counts as activations.
  parallel::MemoryKinds kinds;
};

/// Why no rehearsal on `device` tells the memory of the job's ranks; empty if one does.
std::string why_not_rehearsed(const plan::JobPlan& plan, at::Device device = at::kCPU);

/// Of `rank`, which takes steps on `device` without the others: communicators give it what it
/// gives. It takes as much time and memory as that rank's steps would here. On
/// kernels::shape_device() it takes the memory that a GPU would need of no device, and the time to
/// issue a step's operators. The plan must have no why_not_rehearsed().
RehearsedMemory rehearse_memory(const plan::JobPlan& plan, mesh::Rank rank,
                                at::Device device = at::kCPU);

}  // namespace tessera::train
