// SPDX-License-Identifier: Apache-2.0
// What one needs to inspect a step that went wrong, and to run it again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tessera/data/sample_source.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

struct Fault {
  std::int64_t step = 0;          ///< from 1
  std::int64_t first_sample = 0;  ///< of the step's batch
  std::int64_t global_batch = 0;
  std::string what;                   ///< for people: tensor, rank, samples
  std::filesystem::path checkpoints;  ///< of the run; empty if it has none
};

/// Writes job.dump_folder/faults/step-%08d: batch.safetensors, the whole global batch as a replay
/// file of one step, and fault.json, which says what happened and how to run it again, from the
/// latest checkpoint there is. Returns the folder. One rank calls it. Throws Error(environment or
/// data) if it cannot be written.
std::filesystem::path write_fault_bundle(const plan::JobPlan& plan, const Fault& fault,
                                         const data::SampleSource& source);

}  // namespace tessera::train
