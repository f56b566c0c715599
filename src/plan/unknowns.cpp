// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/unknowns.hpp"

namespace tessera::plan {

std::string measured_first(const JobPlan& plan) {
  if (!plan.microbatches.pipeline.ranges)
    return "parallelism.pipeline_parallel_split = \"measured\" decides when the job starts";
  if (!plan.microbatch_trials.empty())
    return "the microbatch is chosen by its time, in the first steps";
  if (plan.sharding.weighs_memory())
    return "parallelism.fsdp_reshard_after_forward = \"auto\" depends on the free memory";
  if (plan.recompute.kind == RecomputePolicy::Kind::budget)
    return "activation_checkpoint.mode = \"memory_budget\" depends on measured memory";
  return {};
}

std::string uneven_experts(const JobPlan& plan) {
  const auto& mixture = plan.model.shape.mixture;
  if (plan.layout.expert_degree() > 1 && mixture && !mixture->routing.forced_even &&
      !plan.fixes_rows()) {
    const std::string why =
        "the rows of each expert depend on the data; "
        "parallelism.expert_parallel_capacity_factor fixes their number, and "
        "debug.moe_force_load_balance makes them equal";
    return plan.expert_rows.once ? why + ", but sends tokens to fewer ranks" : why;
  }
  return {};
}

}  // namespace tessera::plan
