// SPDX-License-Identifier: Apache-2.0
// From a job's plan to the values that the components below are made with.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/comm/world.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/stage_options.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

/// What carries the mesh's axes on `device`: by default NCCL on a GPU, and MPI on the host. Throws
/// Error(environment) for NCCL on the host, and for buffers that are to be registered without it.
comm::Backend backend_of(const plan::JobPlan& plan, at::Device device);

/// Lets this rank compute with OMP_NUM_THREADS threads, by default as many as its share of the
/// node's cores. It never starts more threads than that share; rank 0 warns where a rank was to.
/// Collective.
void use_share_of_cores(comm::World& world);

/// Makes glibc keep what a step frees for the next step. Otherwise the kernel takes it, and clears
/// each page again when it is touched: 3 % of the time of a small model.
void keep_freed_memory();

parallel::Precision precision_of(const plan::PrecisionPlan& types);

/// The planned model, with angles for the positions of a sequence.
model::Model model_of(const plan::JobPlan& plan, at::Device device);

/// With the microbatches of the first step.
parallel::StageOptions stage_options_of(const plan::JobPlan& plan, at::Device device);

}  // namespace tessera::train
