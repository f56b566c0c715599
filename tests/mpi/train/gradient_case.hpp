// SPDX-License-Identifier: Apache-2.0
// One row of the gradient test: a mesh, a schedule, a policy; and how far its gradients are from
// the one-rank run's.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>
#include <vector>

#include "tessera/comm/world.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/mesh/layout.hpp"
#include "tessera/model/model.hpp"

namespace tessera::test {

struct GradientCase {
  int pp = 1, replicate = 1, dp = 1, cp = 1, tp = 1;
  std::string schedule = "1F1B";
  std::string split = "layers";     ///< pipeline_parallel_split
  std::vector<std::string> points;  ///< pipeline_parallel_split_points
  std::string reshard = "default";
  std::vector<std::vector<std::string>> rules;  ///< reshard_rules
  std::string adding = "default";               ///< fsdp_gradient_accumulation
  bool sequence_parallel = true, loss_parallel = true;
  bool async_tensor_parallel = false;
  int kv_heads = 8;
  bool tied = false;
  int accumulation = 1;
  std::string recompute = "none";
  bool offload = false;  ///< of activations; on a device
  std::string dtype = "float64";
  bool bfloat16_weights = false;  ///< masters in bfloat16, also of the one-rank run
  comm::Backend backend = comm::Backend::mpi;
  bool over_nccl = true;  ///< on a device, in the place of `backend`
  bool deterministic = false;
  std::string family;  ///< of tiny_family(); empty = the tiny Llama
  int ep = 1, etp = 1;
  double capacity = 0;                ///< expert_parallel_capacity_factor; 0 = none
  bool sends_once = false;            ///< expert_parallel_comm_backend = "deepep"
  bool overlaps = true;               ///< pipeline_parallel_expert_parallel_overlap
  std::string rotate = "allgather";   ///< context_parallel_rotate_method
  bool balanced = true;               ///< context_parallel_load_balancer
  bool documents = false;             ///< packed and masked
  std::string stage_map = "default";  ///< pipeline_parallel_stage_map
  std::string csv;                    ///< pipeline_parallel_schedule_csv
  std::string fused_loss = "never";   ///< fused_linear_cross_entropy
  std::string recipe;                 ///< of float8 or MX; empty = nothing is rounded
  bool gathers_bytes = false;         ///< enable_fsdp_float8_all_gather
  std::string experts;                ///< "float8" or "mx": of quantize.grouped_mm
  bool registers = false;             ///< fsdp_register_buffers; over NCCL

  std::string name() const;
  /// By an MX recipe, in block_model(); else float8 rounds even_model().
  bool in_blocks() const { return recipe.starts_with("mx") || experts == "mx"; }
  /// Roundings to the 8 bits of bfloat16 leave up to 2e-2.
  double tolerance() const {
    if (dtype == "bfloat16") return 4e-2;
    return dtype == "float64" ? (family.empty() ? 1e-10 : 1e-9) : 1e-5;
  }
};

/// What a row trains with, on `world` ranks.
config::JobConfig job_of(const GradientCase& row);
model::Model model_of(const GradientCase& row, at::Device device);
mesh::Layout layout_of(const GradientCase& row, int world);

struct GradientError {
  double worst = 0;       ///< largest relative L2 difference over all parameters
  std::string parameter;  ///< where
  double loss = 0;        ///< relative difference of the loss
  double norm = 0;        ///< relative difference of the norm by which gradients are clipped
};

/// Runs the first step on one rank and on the mesh, and compares each parameter's gradient, the
/// loss and the norm. Collective over `world`.
GradientError compare_gradients(comm::World& world, const GradientCase& row);
/// Expects all three within the row's tolerance.
GradientError expect_equal_gradients(comm::World& world, const GradientCase& row);

/// Every factorisation of `world` into pp x dp x tp, with the schedules, policies and the rest that
/// apply to it.
std::vector<GradientCase> gradient_cases(int world);

/// Pipelines that are cut inside blocks: in front of every kind of cell, and where a balanced split
/// says.
std::vector<GradientCase> sub_layer_cases(int world);

/// Sharding policies beyond the matrix: neighbours, rules, sharded accumulation, replicas.
std::vector<GradientCase> policy_cases(int world);

/// Every schedule but 1F1B and GPipe, which the others have; stages in other places.
std::vector<GradientCase> schedule_cases(int world);

/// Those with experts, context and asynchronous tensor parallelism, whose gradients of weights are
/// left for later too.
std::vector<GradientCase> mixed_schedule_cases(int world);

/// Tensor parallelism without sequence parallelism or vocabulary-parallel loss, and with fewer
/// key-value heads than ranks.
std::vector<GradientCase> tensor_cases(int world);

/// Output layer and loss in chunks of tokens, over every axis.
std::vector<GradientCase> fused_loss_cases(int world);

/// Every way of recomputing activations.
std::vector<GradientCase> recompute_cases(int world);
/// Mixtures of experts and the families of attention, over every axis; experts shared out over ep,
/// each cut over tp.
std::vector<GradientCase> mixture_cases(int world);
/// One family on pp x dp x tp as `world` allows, with experts over all ranks of a stage,
/// recomputed.
GradientCase mixture_case(int world, const std::string& family);

/// Losses, experts' loads and their biases of three optimizer steps, mesh against one rank: the
/// largest relative difference. Collective over `world`.
double compare_steps(comm::World& world, const GradientCase& row);
/// The losses, norms and loads of three optimizer steps on the mesh, and the biases of this rank's
/// stages. Collective over `world`.
std::vector<double> three_steps(comm::World& world, const GradientCase& row);
/// Rows of the matrix whose ranks share experts, which get a fixed number of rows: as many as fit,
/// and fewer.
std::vector<GradientCase> capacity_cases(int world);
/// Rows of the matrix whose tokens go once to each rank; every second with a fixed number of rows.
std::vector<GradientCase> sent_once_cases(int world);
/// DualPipeV whose tokens travel to experts while another microbatch computes: every way of
/// recomputing activations and of sending.
std::vector<GradientCase> overlapped_cases(int world);
/// Context parallelism: both rotations and both ways to deal positions, documents, few key-value
/// heads, pipelines that are cut beside attention; documents on one rank, too.
std::vector<GradientCase> context_cases(int world);

/// Linear layers that are rounded to float8 or MXFP8, by each recipe over each axis but the
/// context's, whose ranks have scales of their own.
std::vector<GradientCase> rounded_cases(int world);
/// By recipe `blockwise`.
std::vector<GradientCase> blockwise_cases(int world);
/// Experts that are rounded, each rank's own or shared.
std::vector<GradientCase> rounded_experts_cases(int world);
/// Weights gathered in float8, where they are freed, kept whole, kept in parts, and replicated.
std::vector<GradientCase> gathered_bytes_cases(int world);
/// With fewer key-value heads than tensor-parallel ranks, whose gradients are rounded as sums.
std::vector<GradientCase> rounded_copies_cases(int world);
/// On GPUs: gathers in place and reductions in memory that NCCL knows, whole and kept in parts, in
/// pipelines, rounded to bfloat16 and float8, and of experts.
std::vector<GradientCase> registered_cases(int world);

/// All of these but the rounded and the registered ones: the matrix.
std::vector<GradientCase> all_cases(int world);

}  // namespace tessera::test
