// SPDX-License-Identifier: Apache-2.0
#include "rank_params.hpp"

#include <algorithm>

namespace tessera::planner {
namespace {

/// While a block runs; the output's weights stay.
double gathered_blocks(const Workload& work, const RankParams& params, const Params& ends) {
  if (reads_stored_weights(work)) return 0;
  if (!work.reshard) return gathered_bytes(work, params.all);
  const double ahead =
      1 + static_cast<double>(std::min<std::int64_t>(work.prefetch_units, work.model.layers));
  return ahead * gathered_bytes(work, params.largest) + gathered_bytes(work, ends);
}

}  // namespace

RankParams rank_params(const Workload& work, schedule::PipelineRank rank) {
  RankParams out;
  for (const schedule::StageIndex index : work.pipeline.map.stages_of(rank)) {
    const StageContent& stage = work.pipeline.stages[index];
    out.all.add(params_of_stage(work, stage));
    out.units += stage.blocks() + (stage.embedding ? 1 : 0) + (stage.head ? 1 : 0);
    for (const bool mixture : {false, true}) {
      if ((mixture ? stage.mixtures : stage.dense) <= 0) continue;
      const Params block = params_of_block(work, mixture);
      if (block.all() > out.largest.all()) out.largest = block;
    }
    if (stage.embedding && !stores_what_layers_read(work)) out.ends.add(params_of_embedding(work));
    // The next microbatch's blocks come while the embedding's gradient is on its way.
    if (stage.embedding && work.pipeline.ranks() > 1) out.head = params_of_embedding(work);
    if (stage.head) out.ends.add(params_of_head(work));
    if (stage.head) out.head = params_of_head(work);
  }
  // A tied weight waits for the embedding's gradient.
  if (work.model.tied && work.pipeline.ranks() == 1) out.head = params_of_embedding(work);
  return out;
}

double gathered_bytes(const Workload& work, const RankParams& params) {
  // Freed: a block and those ahead of it, the embedding and the output; and the gradients of one
  // block.
  const double gradients = work.reshard ? work.gradient_bytes * params.largest.all() : 0;
  return gathered_blocks(work, params, params.ends) + gradients;
}

double reducing_bytes(const Workload& work, const Stack& stack, const RankParams& params,
                      double working) {
  const bool several = work.pipeline.microbatches_a_step() > 1;
  if (stack.reductions_behind == 0 || (work.unsharded_gradients && several) ||
      work.distributed_optimizer || is_unsharded(work))
    return 0;
  // Those of the microbatch before are among them.
  const double others = params.units - (several ? 0 : 1);
  const double own = reduced_bytes(work, params.largest),
               units = std::min(stack.reductions_behind, std::max(0.0, others));
  const double behind =
      units > 0 ? own * (units - 1) + std::max(own, reduced_bytes(work, params.head)) : 0;
  const double added = own + element_bytes(work.precision) * params.largest.all();
  return std::max(0.0, gathered_blocks(work, params, params.head) + behind +
                           std::max(added, working) - gathered_bytes(work, params));
}

}  // namespace tessera::planner
