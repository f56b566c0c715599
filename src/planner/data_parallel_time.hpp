// SPDX-License-Identifier: Apache-2.0
// What a step waits for weights and gradients of data-parallel ranks.
#pragma once

#include "cell_time.hpp"
#include "shares.hpp"

namespace tessera::planner {

/// The collectives and the computation beside which they run, of one unit or of a whole rank.
struct Traffic {
  double gather = 0, reduce = 0;  ///< seconds
};
/// Of weights that have these parameters on a tensor-parallel rank.
Traffic traffic_of(const Workload& work, const Machine& machine, const Stack& stack,
                   const Params& params);

/// FSDP: what a microbatch waits beyond the computation of a unit. `replicas`: sums over copies.
Times fsdp_unit(const Workload& work, const Machine& machine, const Stack& stack,
                const Params& params, const CellTime& time);

/// Calls of a unit in a microbatch, in which a rank waits for others.
double fsdp_calls(const Workload& work);

/// A distributed optimizer: gradients are reduced beside the last microbatch's backward, weights
/// are gathered beside the first one's forward. `chunks` stages of the rank take turns.
Times distributed_optimizer(const Workload& work, const Machine& machine, const Stack& stack,
                            schedule::PipelineRank rank, double forward, double backward);

/// The update of a rank's weights.
double update_seconds(const Workload& work, const Machine& machine, const Stack& stack,
                      const Params& params);

/// Ranks wait for the slowest: of n normal times the largest is expected_most(n) deviations above
/// the mean. Those that share weights, a sequence, experts or a pipeline do so in each microbatch,
/// all in each step: microbatches without a wait between them average out.
double waiting_seconds(const Workload& work, double run_seconds);

}  // namespace tessera::planner
