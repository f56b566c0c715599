// SPDX-License-Identifier: Apache-2.0
#include "shares.hpp"

#include <algorithm>

namespace tessera::planner {

namespace {

Params dense_params(double dense, double gather_bytes) { return {dense, 0, dense * gather_bytes}; }

}  // namespace

Params params_of_block(const Workload& work, bool mixture) {
  const double all = work.model.block_params(mixture),
               bytes = work.in_bytes ? work.in_bytes->block : element_bytes(work.precision);
  if (!mixture) return dense_params(all / work.tp, bytes);
  const double experts =
      static_cast<double>(work.model.mixture->experts) * work.model.expert_params();
  Params out = dense_params((all - experts) / work.tp, bytes);
  out.experts = experts / (work.ep * work.etp);
  return out;
}

Params params_of_embedding(const Workload& work) {
  return dense_params(work.model.embedding_params() / work.tp, element_bytes(work.precision));
}

Params params_of_head(const Workload& work) {
  if (work.model.tied && work.pipeline.ranks() == 1) return {};
  return dense_params(work.model.head_params() / work.tp,
                      work.in_bytes ? work.in_bytes->head : element_bytes(work.precision));
}

Params params_of_stage(const Workload& work, const StageContent& stage) {
  Params out;
  if (stage.dense > 0) out.add(params_of_block(work, false), stage.dense);
  if (stage.mixtures > 0) out.add(params_of_block(work, true), stage.mixtures);
  if (stage.embedding) out.add(params_of_embedding(work));
  if (stage.head) out.add(params_of_head(work));
  if (stage.predictors > 0)
    out.add(params_of_block(work, work.model.is_mixture(work.model.layers - 1)),
            static_cast<double>(stage.predictors));
  return out;
}

Params params_of_rank(const Workload& work, schedule::PipelineRank rank) {
  Params out;
  for (const schedule::StageIndex stage : work.pipeline.map.stages_of(rank))
    out.add(params_of_stage(work, work.pipeline.stages[stage]));
  return out;
}

int shards_of(const Workload& work) {
  return work.distributed_optimizer ? work.data_parallel() * work.cp : work.fsdp;
}

int expert_shards_of(const Workload& work) {
  return std::max(1, shards_of(work) * work.tp / (work.ep * work.etp));
}

bool is_unsharded(const Workload& work) {
  return shards_of(work) == 1 && (!work.model.mixture || expert_shards_of(work) == 1);
}

double summed_bytes(const Workload& work, const Params& params) {
  const bool sums = work.unsharded_gradients && !work.distributed_optimizer;
  return sums ? reduced_bytes(work, params) : 0;
}

double reduced_bytes(const Workload& work, const Params& params) {
  return work.gradient_bytes * ((shards_of(work) > 1 ? params.dense : 0) +
                                (expert_shards_of(work) > 1 ? params.experts : 0));
}

double gathered_bytes(const Workload& work, const Params& params) {
  return params.dense_gathered + element_bytes(work.precision) * params.experts;
}

bool stores_what_layers_read(const Workload& work) {
  return is_unsharded(work) && !work.distributed_optimizer &&
         work.master_bytes == element_bytes(work.precision);
}

bool reads_stored_weights(const Workload& work) {
  return stores_what_layers_read(work) && !work.in_bytes;
}

}  // namespace tessera::planner
