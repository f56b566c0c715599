// SPDX-License-Identifier: Apache-2.0
// Is there as much memory as a job is sure to take?
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/comm/world.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

/// Collective: throws Error(environment), on all ranks, where a rank has less free memory than the
/// job takes there; without gradients and moments unless it `trains`. Free is its share of what its
/// GPU has among `sharers` ranks, or of what the node's memory and the control group can give.
/// Needs neither the mesh nor data.
void check_memory(const plan::JobPlan& plan, comm::World& world, at::Device device, int sharers,
                  bool trains);

/// The same of one process that holds the whole model and trains nothing.
void check_memory_alone(const plan::InferencePlan& plan, const model::ModelSpec& model,
                        at::Device device);

}  // namespace tessera::train
