// SPDX-License-Identifier: Apache-2.0
// The parameters of a tensor-parallel rank: of all data-parallel ranks together, and of experts.
#pragma once

#include "tessera/planner/workload.hpp"

namespace tessera::planner {

struct Params {
  double dense = 0, experts = 0;
  double dense_gathered = 0;  ///< bytes of `dense` in a gather

  double all() const { return dense + experts; }
  Params& add(const Params& other, double factor = 1) {
    dense += other.dense * factor;
    experts += other.experts * factor;
    dense_gathered += other.dense_gathered * factor;
    return *this;
  }
};

Params params_of_block(const Workload& work, bool mixture);
Params params_of_embedding(const Workload& work);
/// Nothing where the embedding on the same rank has the weights.
Params params_of_head(const Workload& work);
Params params_of_stage(const Workload& work, const StageContent& stage);
Params params_of_rank(const Workload& work, schedule::PipelineRank rank);

/// Ranks over which weights, or the state of the optimizer, are cut: of what all data-parallel
/// ranks share, and of an expert.
int shards_of(const Workload& work);
int expert_shards_of(const Workload& work);

/// No rank has a part of another one's weights.
bool is_unsharded(const Workload& work);
/// Of whole gradients that are reduced to shards: without shards, none are.
double reduced_bytes(const Workload& work, const Params& params);
/// Of the whole gradients in which a rank adds up those of microbatches. Without shards, it adds
/// them where the optimizer reads them.
double summed_bytes(const Workload& work, const Params& params);
/// Of whole weights as gathered.
double gathered_bytes(const Workload& work, const Params& params);
/// The stored weights have the layers' type, and are whole: but for weights in bytes, nothing is
/// gathered, and nothing cast.
bool stores_what_layers_read(const Workload& work);
/// The same for all weights.
bool reads_stored_weights(const Workload& work);

}  // namespace tessera::planner
