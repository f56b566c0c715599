// SPDX-License-Identifier: Apache-2.0
// How a pipeline stage keeps, shards and computes its part of the model.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>
#include <vector>

#include "tessera/parallel/context_attention.hpp"
#include "tessera/parallel/gradient_reducer.hpp"
#include "tessera/parallel/recompute.hpp"
#include "tessera/parallel/reshard_policy.hpp"
#include "tessera/parallel/shard_group.hpp"

namespace tessera::parallel {

/// Where gradients of microbatches add up before the reduction over data-parallel ranks.
enum class Accumulation : std::uint8_t {
  standard,  ///< as FSDP2 in TorchTitan: sharded, but unsharded in a pipeline; also where the order
             ///< is deterministic
  unsharded,  ///< whole on each rank: one reduce_scatter a step
  sharded,    ///< in this rank's shard: one reduce_scatter a microbatch, and 1/fsdp of the memory
};

/// Where weights and gradients are, and in which types.
struct ShardingOptions {
  Precision precision;
  at::Device device = at::kCPU;
  ReshardPolicy reshard;
  std::vector<ReshardRule> reshard_rules;
  Accumulation accumulation = Accumulation::standard;
  bool deterministic = false;       ///< microbatches are added over the fixed tree
  std::vector<std::string> freeze;  ///< parameters whose name matches a pattern are not trained
  bool offload = false;             ///< masters, gradients and moments in host memory
};

/// See TensorParallel and TokenChunks.
struct TensorParallelOptions {
  bool sequence_parallel = true;
  bool loss_parallel = true;
  int token_chunks = 0;  ///< > 0: tokens travel around matmuls in this many chunks
  bool overlap_chunks = true;
};

/// How ranks share sequences.
struct ContextOptions {
  SequenceCut cut;  ///< by default nobody shares them
  Rotation rotation = Rotation::ring;
};

/// The size of a microbatch on this rank.
struct MicrobatchShape {
  std::int64_t batch = 1;  ///< sequences
  std::int64_t seq = 1;    ///< positions of a sequence
  std::int64_t tokens() const { return batch * seq; }
};

struct StageOptions {
  ShardingOptions sharding;
  TensorParallelOptions tensor;
  ContextOptions context;
  RecomputePolicy recompute;  ///< of blocks
  MicrobatchShape microbatch;
};

/// How gradients of such stages are reduced. `pipelined`: there are several stages.
ReducerOptions reducer_options_of(const StageOptions& options, bool pipelined);

}  // namespace tessera::parallel
