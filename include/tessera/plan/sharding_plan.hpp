// SPDX-License-Identifier: Apache-2.0
// How weights, gradients and the work of one layer are spread over ranks, and what backward
// computes again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/plan/reshard_policy.hpp"

namespace tessera::plan {

/// Where gradients of microbatches add up before the reduction over data-parallel ranks.
enum class Accumulation : std::uint8_t {
  standard,  ///< as FSDP2 in TorchTitan: sharded, but unsharded in a pipeline; also where the order
             ///< is deterministic
  unsharded,  ///< whole on each rank: one reduce_scatter a step
  sharded,    ///< in this rank's shard: one reduce_scatter a microbatch, and 1/fsdp of the memory
};

struct ShardingPlan {
  ReshardPolicy reshard;
  std::vector<ReshardRule> reshard_rules;
  int prefetch_units = 1;         ///< gathered ahead of the unit that computes
  bool register_buffers = false;  ///< NCCL knows the memory of gathers and reductions
  Accumulation accumulation = Accumulation::standard;
  bool deterministic = false;       ///< microbatches are added over the fixed tree
  std::vector<std::string> freeze;  ///< parameters whose name matches a pattern are not trained
  bool offload = false;             ///< masters, gradients and moments in host memory

  /// Does a policy ask for the free memory?
  bool weighs_memory() const;
  /// Is each microbatch reduced by itself, in a model of several stages (`pipelined`) or one?
  bool reduces_each_microbatch(bool pipelined) const;
};

struct TensorParallelPlan {
  bool sequence_parallel = true;
  bool loss_parallel = true;
  int token_chunks = 0;  ///< > 0: tokens travel around matmuls in this many chunks
  bool overlap_chunks = true;
};

/// How keys and values reach the context-parallel ranks that need them.
enum class Rotation : std::uint8_t {
  ring,        ///< one block at a time, overlapped with the computation: memory for two blocks
  all_gather,  ///< all blocks at once, and one reduce_scatter in backward: memory for all of them,
               ///< fewest messages
};

struct RecomputePolicy {
  enum class Kind : std::uint8_t {
    nothing,
    every,       ///< each `every`-th block of the model whole, counted from 1
    operations,  ///< all blocks by operation
    budget,      ///< as little as keeps activations below `budget`
  };
  Kind kind = Kind::nothing;
  std::int64_t every = 1;
  /// between what remains when every block is recomputed whole (0) and when none is (1)
  double budget = 1;
  /// modules whose products are made again where others are kept
  std::vector<std::string> products = {};
  bool offload = false;  ///< on a GPU: what blocks keep is in host memory meanwhile

  /// Is every block recomputed whole?
  bool is_full() const { return kind == Kind::every && every == 1; }
  /// Is block number `block` (from 0) recomputed whole, whatever memory there is?
  bool remakes_block(std::int64_t block) const {
    return kind == Kind::every && (block + 1) % every == 0;
  }
  /// The share of so many blocks of which this is true, where `kind` is `every`.
  double share_of(std::int64_t blocks) const {
    return static_cast<double>(blocks / every) / static_cast<double>(blocks);
  }
};

}  // namespace tessera::plan
