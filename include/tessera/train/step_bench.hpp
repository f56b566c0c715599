// SPDX-License-Identifier: Apache-2.0
// tessera bench step: how fast a job's steps are, without its data.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/comm/world.hpp"
#include "tessera/metrics/flops.hpp"
#include "tessera/metrics/time_table.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/on_failure.hpp"

namespace tessera::train {

struct BenchedStep {
  double seconds = 0;                    ///< of a step of median length, on the slowest rank
  double tokens_per_second = 0;          ///< of all ranks
  double flops_per_second = 0;           ///< of each rank: metrics::FlopsPerToken::full
  metrics::Peak peak;                    ///< of each rank
  std::int64_t memory_bytes = 0;         ///< of the largest rank's tensors, at most
  std::vector<metrics::Times> of_ranks;  ///< of all steps
};

/// Two steps of the job that do not count, then `steps` >= 1, on tokens drawn at random. Reads no
/// data, and writes no checkpoints and no metrics. Collective. Throws Error, on all ranks alike,
/// after a call of `failed`; Error(usage) for a job that chooses something by what it measures
/// first (plan::measured_first).
BenchedStep bench_step(comm::World& world, const plan::JobPlan& plan, int steps,
                       const OnFailure& failed);

}  // namespace tessera::train
