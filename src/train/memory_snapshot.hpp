// SPDX-License-Identifier: Apache-2.0
// What this rank's memory holds over a step, by kind, as a file for Perfetto.
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/plan/run_plan.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

class MemorySnapshot {
 public:
  /// What is given must outlive this.
  MemorySnapshot(const plan::MemorySnapshotPlan& plan, Trainer& trainer);
  ~MemorySnapshot();
  MemorySnapshot(const MemorySnapshot&) = delete;
  MemorySnapshot& operator=(const MemorySnapshot&) = delete;

  /// Steps count from 1. Of each multiple of the plan's frequency, memory is looked at before each
  /// pass of a unit.
  void begin_step(std::int64_t step);
  /// Collective: each rank writes folder/iteration_STEP/rankN_memory_snapshot.json. Throws
  /// Error(environment).
  void end_step(std::int64_t step);

 private:
  class Sampler;
  void stop();

  const plan::MemorySnapshotPlan& plan_;
  Trainer& trainer_;
  std::shared_ptr<Sampler> sampler_;  ///< while a step is looked at
};

}  // namespace tessera::train
