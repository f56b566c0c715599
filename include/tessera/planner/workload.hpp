// SPDX-License-Identifier: Apache-2.0
// What is priced: a model, a mesh, a pipeline and policies, as values. It comes from a JobPlan, or
// from what a published row says of a run of another program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tessera/plan/job_plan.hpp"
#include "tessera/planner/architecture.hpp"
#include "tessera/planner/machine.hpp"
#include "tessera/planner/stack.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::planner {

enum class Precision : std::uint8_t {
  f32,
  bf16,
  fp8_delayed,  ///< one scale a tensor, from earlier steps
  fp8_current,  ///< one scale a tensor, of this tensor
  mxfp8,        ///< one scale for 32 elements
  nvfp4,        ///< one scale for 16 elements, and a Hadamard transform
  fp8_torchao,  ///< one scale a tensor; weights are cast at each use
};
Format format_of(Precision precision);
/// Throws Error(usage) for a precision that the machine does not have.
void require_products(Precision precision, const Machine& machine);
/// Of what is neither cast for a product nor a sum.
double element_bytes(Precision precision);

/// What the backward of a block makes again.
enum class Recompute : std::uint8_t {
  none,
  full,
  save_qkv,          ///< all but queries, keys and values
  every_second_mm,   ///< TorchTitan's "op": all elementwise operations, and every second product
                     ///< where Stack::op_remakes_products
  latent_up,         ///< queries, keys and values of latent attention
  feed_forward,      ///< the feed-forward layer
  expert_activation  ///< SwiGLU of experts
};

/// How tokens travel to experts: each copy on its own, once to each rank, or once to each domain
/// and from there to its ranks.
enum class Dispatcher : std::uint8_t { alltoall, once_a_rank, once_a_domain };

enum class Graphs : std::uint8_t { none, partial, full };

/// The cells of one pipeline stage. A block of which a stage has a part counts as that part.
struct StageContent {
  double dense = 0, mixtures = 0;  ///< blocks
  bool embedding = false, head = false;
  std::int64_t predictors = 0;

  double blocks() const { return dense + mixtures + static_cast<double>(predictors); }
  bool operator==(const StageContent&) const = default;
};

struct Pipeline {
  schedule::StageMap map = schedule::StageMap::loop(1);
  IndexedVector<schedule::StageIndex, StageContent> stages;
  std::optional<schedule::Kind> kind = schedule::Kind::one_f_one_b;
  std::shared_ptr<const schedule::ActionLists> lists;  ///< of a round; null: made from `kind`
  schedule::Pairs pairs = schedule::Pairs::apart;      ///< of lists made from `kind`
  int microbatches = 1;                                ///< of a round
  int rounds = 1;                                      ///< in a step

  int ranks() const { return map.ranks(); }
  int chunks() const { return map.stages() / map.ranks(); }
  int microbatches_a_step() const { return microbatches * rounds; }
};

struct Workload {
  Architecture model;
  Pipeline pipeline;
  int gpus = 1;
  std::int64_t seq = 1, microbatch = 1;  ///< positions of a sequence; sequences
  Precision precision = Precision::bf16;
  /// Of a weight, a gradient and each of the two moments, with FSDP.
  double master_bytes = 4, gradient_bytes = 4, moment_bytes = 4;
  /// Of a weight in a gather, on average, where linear layers' are gathered as bytes.
  struct GatherBytes {
    double block, head;  ///< experts have their own
  };
  std::optional<GatherBytes> in_bytes = {};
  int tp = 1, cp = 1, ep = 1;
  int etp = 1;        ///< ranks that share each expert
  int fsdp = 1;       ///< ranks that share weights, context-parallel ones among them
  int replicate = 1;  ///< copies of these
  bool distributed_optimizer = false;  ///< `fsdp` is of no meaning then
  bool reshard = true;                 ///< weights are freed after the forward
  int prefetch_units = 1;              ///< gathered ahead of the unit that computes
  bool unsharded_gradients = false;    ///< gradients are added up whole, and reduced once a step
  Recompute recompute = Recompute::none;
  double recomputed_blocks = 1;       ///< share of the blocks to which `recompute` applies
  std::int64_t offloaded_layers = 0;  ///< activations of these go to the host
  bool offload = false;               ///< so do all that blocks keep, but for the last ones
  bool gathers_keys = false;          ///< of context parallelism: at once, and not in a ring
  bool ranges_in_order = false;       ///< likewise: the last rank computes the most scores
  bool async_tp = false;
  bool sequence_parallel = true;  ///< ranks of tp have parts of the tokens between products
  bool loss_parallel = true;
  std::int64_t loss_chunk_tokens = 0;  ///< whose logits exist at once; 0 = a microbatch's
  bool exchange_overlap = false;       ///< exchanges run beside another microbatch
  bool balanced = true;                ///< experts get equal numbers of tokens
  bool fused_grouped = false;          ///< SwiGLU of experts in the epilogue of their product
  Dispatcher dispatcher = Dispatcher::alltoall;
  double expert_capacity = 0;  ///< see plan::rows_for_each_rank(); 0 = none
  bool wants_graphs = false;   ///< of a job: steps are graphs if experts allow it
  Graphs graphs = Graphs::none;

  int data_parallel() const { return gpus / (tp * pipeline.ranks() * cp); }
  /// Of a microbatch, on one group of tensor-parallel ranks.
  double local_tokens() const {
    return static_cast<double>(microbatch * seq) / static_cast<double>(cp);
  }
  /// Rows that a rank sends to experts, as a multiple of those that are chosen: others are free.
  double expert_rows() const;
  double step_tokens() const {
    return static_cast<double>(microbatch * seq) * pipeline.microbatches_a_step() * data_parallel();
  }
};

/// Of a variant of a job.
Graphs graphs_of(const Workload& work);

/// Of a job on the ranks of its plan, as `stack` would run it. Throws Error(usage) where the plan
/// leaves stages to be timed first (pipeline_parallel_split = "measured").
Workload workload_of(const plan::JobPlan& plan, const Stack& stack);

}  // namespace tessera::planner
