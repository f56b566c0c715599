// SPDX-License-Identifier: Apache-2.0
// The parts of a plan that follow from a section of the job alone. The job was checked.
#pragma once

#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {

RunPlan run_plan(const config::Resolved& resolved);
DevicePlan device_plan(const config::JobConfig& job);
CommPlan comm_plan(const config::JobConfig& job);
PrecisionPlan precision_plan(const config::Training& training);
LinearPrecision linear_precision(const config::JobConfig& job);
ArithmeticPlan arithmetic_plan(const config::JobConfig& job);
ShardingPlan sharding_plan(const config::JobConfig& job);
TensorParallelPlan tensor_parallel_plan(const config::JobConfig& job);
FusedLoss fused_loss(const config::JobConfig& job);
RecomputePolicy recompute_policy(const config::ActivationCheckpoint& wanted);
OptimizerPlan optimizer_plan(const config::JobConfig& job);
FaultPlan fault_plan(const config::JobConfig& job, int ranks);
/// All but the batches of validation, which depend on the mesh.
DataPlan data_plan(const config::JobConfig& job);
LoadPlan load_plan(const config::Resolved& resolved, const model::ModelSpec& model);
SavePlan save_plan(const config::Checkpoint& checkpoint);

}  // namespace tessera::plan
