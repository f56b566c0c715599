// SPDX-License-Identifier: Apache-2.0
// From a resolved configuration to the values that the components below are made with.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>

#include "tessera/comm/world.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/model/model.hpp"
#include "tessera/model_spec/families.hpp"
#include "tessera/optim/schedule.hpp"
#include "tessera/parallel/stage.hpp"
#include "tessera/train/batch_plan.hpp"

namespace tessera::train {

mesh::Degrees degrees_of(const config::Parallelism& parallelism);

/// Throws Error(usage) naming the origin of the degrees when they do not fit `world`, or the model
/// does not fit the mesh.
mesh::Layout layout_of(const config::Resolved& resolved, int world);

/// comm.backend on `device`: auto is nccl on a GPU, and mpi on the host. Throws Error(environment)
/// for nccl on the host.
comm::Backend backend_of(const config::JobConfig& job, at::Device device);
/// Whether it is nccl where ranks have GPUs.
bool wants_nccl(const config::JobConfig& job);
/// Where tensors on `device` lie.
comm::Memory memory_of(at::Device device);

/// Lets this rank compute with OMP_NUM_THREADS threads, by default as many as its share of the
/// node's cores. It never starts more threads than that share; rank 0 warns where a rank was to.
/// Collective.
void use_share_of_cores(comm::World& world);

/// training.dtype, mixed_precision_param, mixed_precision_reduce. float64 makes everything float64.
parallel::Precision precision_of(const config::JobConfig& job);

/// Shape of model.hf_config, or of name and flavor, with what the job says of mixtures; a debug
/// model takes the larger of its vocabulary and the tokenizer's.
model::DecoderShape decoder_shape_of(const config::JobConfig& job, std::int64_t tokenizer_vocab);

/// Throws Error(data) when the tokenizer's vocabulary is larger than the model's.
void check_vocabulary(std::int64_t tokenizer_vocab, const std::string& model,
                      std::int64_t model_vocab);

/// The model of that shape, with angles for `positions` positions. Throws Error(data) when the
/// tokenizer's vocabulary (0 = unknown) is larger than the model's.
model::Model model_of(const config::JobConfig& job, std::int64_t tokenizer_vocab,
                      std::int64_t positions, at::Device device);

/// What tensor parallelism cuts can be cut in so many pieces. Throws Error(usage).
void check_tensor_parallel_fits(const model::ModelSpec& model, int tp);
/// The model's experts can be shared out as the mesh wants it. Throws Error(usage).
void check_experts_fit(const model::ModelSpec& model, const mesh::Layout& layout);
/// A microbatch's tokens can be shared by tensor-parallel ranks where they are. Throws
/// Error(usage).
void check_tokens_fit(const model::ModelSpec& model, const mesh::Layout& layout,
                      const BatchPlan& plan, bool sequence_parallel);
/// All three: errors in which model and mesh do not fit each other, before anything is allocated.
/// Throws Error(usage).
void check_model_fits(const model::ModelSpec& model, const mesh::Layout& layout,
                      const BatchPlan& plan, bool sequence_parallel);

/// Does a reshard policy ask for the free memory?
bool weighs_memory(const config::JobConfig& job);

parallel::StageOptions stage_options_of(const config::JobConfig& job, const BatchPlan& plan,
                                        at::Device device);
optim::ScheduleOptions lr_schedule_of(const config::JobConfig& job);

}  // namespace tessera::train
