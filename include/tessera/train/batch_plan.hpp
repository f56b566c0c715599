// How a global batch is cut: over data-parallel ranks, accumulation rounds and microbatches.
#pragma once

#include <cstdint>

#include "tessera/config/job_config.hpp"
#include "tessera/mesh/layout.hpp"

namespace tessera::train {

/// Data-parallel rank d reads rows [d * rows, (d + 1) * rows) of each step, in order: the first rows in the first
/// microbatch.
struct BatchPlan {
  std::int64_t global_batch = 0;     ///< sequences of a step, whole job
  std::int64_t rows = 0;             ///< of them, of one data-parallel rank
  std::int64_t microbatch_rows = 0;  ///< sequences that pass through the model together
  int rounds = 1;                    ///< passes over the schedule in a step
  int microbatches = 1;              ///< of one round

  int microbatches_a_step() const { return rounds * microbatches; }

  /// Throws Error(usage) when the batch sizes do not divide, saying what would. `microbatch_rows`: of a pipeline, in
  /// the place of the job's; the job's "auto" is 1 until somebody knows better.
  static BatchPlan make(const config::JobConfig& job, const mesh::Layout& layout, std::int64_t microbatch_rows = 0);
};

}  // namespace tessera::train
