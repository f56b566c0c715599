// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/graph_obstacle.hpp"

#include <fmt/format.h>

#include "tessera/base/grouped_columns.hpp"

namespace tessera::plan {
namespace {

std::string obstacle_of_experts(const JobPlan& plan) {
  const model::DecoderShape& shape = plan.model.shape;
  if (!shape.mixture) return "";
  const int parts = plan.layout.experts_cut_by_tp() ? plan.layout.degree(mesh::Axis::tp) : 1;
  return experts_obstacle({plan.precision.compute, shape.dim, shape.mixture->hidden / parts,
                           plan.layout.expert_degree() > 1 && !plan.fixes_rows()});
}

}  // namespace

std::string experts_obstacle(const ExpertProducts& products) {
  if (products.counted_rows)
    return "the host sends tokens to other ranks' experts; with "
           "parallelism.expert_parallel_capacity_factor it need not";
  if (products.type != DType::bf16)
    return "the host multiplies expert by expert (training.mixed_precision_param)";
  if (products.dim % kGroupedColumns != 0 || products.hidden % kGroupedColumns != 0)
    return fmt::format("the host multiplies expert by expert, whose widths are no multiples of {}",
                       kGroupedColumns);
  return "";
}

std::string graph_obstacle(const JobPlan& plan) {
  if (std::string why = obstacle_of_experts(plan); !why.empty()) return why;
  return obstacle_beside_experts(plan);
}

std::string obstacle_beside_experts(const JobPlan& plan) {
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
