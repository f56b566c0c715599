// SPDX-License-Identifier: Apache-2.0
// What FSDP has of a pipeline rank's parameters beside its shards: gathered weights, and gradients
// that are being reduced.
#pragma once

#include "shares.hpp"

namespace tessera::planner {

struct RankParams {
  Params all, largest;  ///< of all units, and of the largest block
  Params ends;          ///< embedding and output: what is gathered of them
  Params head;          ///< output or embedding, whose gradient is reduced while blocks run
  double units = 0;
};
RankParams rank_params(const Workload& work, schedule::PipelineRank rank);

/// Weights as layers read them, and the gradients of one block.
double gathered_bytes(const Workload& work, const RankParams& params);

/// While the gradients of a block are added up, those of the units behind it are being reduced, and
/// its own are there in both types; its kernels, which take `working`, run before that. This is so
/// much more than gathered_bytes(), or less where 0.
double reducing_bytes(const Workload& work, const Stack& stack, const RankParams& params,
                      double working);

}  // namespace tessera::planner
