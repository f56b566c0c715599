// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/graph_obstacle.hpp"

namespace tessera::plan {

std::string graph_obstacle(const JobPlan& plan) {
  if (plan.model.shape.mixture) return "the host takes part in mixtures of experts";
  if (plan.batch().documents) return "each batch has documents of other lengths";
  if (plan.sharding.offload)
    return "the host has a part of the weights (training.enable_cpu_offload)";
  if (plan.recompute.offload)
    return "activations are in host memory (activation_checkpoint.offload)";
  if (plan.comm.check_collectives) return "debug.check_collectives looks at each call";
  if (plan.run.trace) return "profiling.enable_profiling records each call";
  return "";
}

}  // namespace tessera::plan
