// SPDX-License-Identifier: Apache-2.0
// How a pipeline stage keeps, shards and computes its part of the model.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/parallel/context_attention.hpp"
#include "tessera/parallel/gradient_reducer.hpp"
#include "tessera/parallel/recompute.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/plan/expert_rows.hpp"
#include "tessera/plan/fused_loss.hpp"
#include "tessera/plan/linear_precision.hpp"
#include "tessera/plan/sharding_plan.hpp"

namespace tessera::parallel {

/// Where weights and gradients are, and in which types.
struct ShardingOptions : plan::ShardingPlan {
  Precision precision;
  at::Device device = at::kCPU;
};

/// How ranks share sequences.
struct ContextOptions {
  plan::SequenceCut cut;  ///< by default nobody shares them
  plan::Rotation rotation = plan::Rotation::ring;
};

/// The size of a microbatch on this rank.
struct MicrobatchShape {
  std::int64_t batch = 1;  ///< sequences
  std::int64_t seq = 1;    ///< positions of a sequence
  std::int64_t tokens() const { return batch * seq; }
};

struct StageOptions {
  ShardingOptions sharding;
  plan::TensorParallelPlan tensor;  ///< see TensorParallel and TokenChunks
  ContextOptions context;
  plan::RecomputePolicy recompute;  ///< of blocks
  MicrobatchShape microbatch;
  plan::FusedLoss fused_loss = plan::FusedLoss::never;
  plan::LinearPrecision linears;  ///< see RoundedWeights
  plan::ExpertRows expert_rows;   ///< see ExpertExchange
};

/// How gradients of such stages are reduced. `pipelined`: there are several stages.
ReducerOptions reducer_options_of(const StageOptions& options, bool pipelined);

}  // namespace tessera::parallel
