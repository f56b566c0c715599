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
  standard,   ///< as FSDP2 in TorchTitan: sharded, but unsharded in a pipeline; also where the order
              ///< is deterministic
  unsharded,  ///< whole on each rank: one reduce_scatter a step
  sharded,    ///< in this rank's shard: one reduce_scatter a microbatch, and 1/fsdp of the memory
};

struct StageOptions {
  Precision precision;
  ReshardPolicy reshard;
  std::vector<ReshardRule> reshard_rules;
  Accumulation accumulation = Accumulation::standard;
  std::vector<std::string> freeze;  ///< parameters whose name one of these patterns matches are not trained
  bool offload = false;             ///< masters, gradients and moments in host memory
  RecomputePolicy recompute;        ///< of blocks
  bool sequence_parallel = true;    ///< see TensorParallel
  bool loss_parallel = true;
  int token_chunks = 0;        ///< > 0: tokens travel around tensor-parallel products in this many chunks
  bool overlap_chunks = true;  ///< see TokenChunks
  bool deterministic = false;  ///< microbatches are added over the fixed tree
  at::Device device = at::kCPU;
  std::int64_t batch = 1;  ///< sequences of a microbatch
  std::int64_t seq = 1;    ///< positions of a sequence on this rank
  SequenceCut cut;         ///< of sequences over context-parallel ranks; by default nobody shares them
  Rotation rotation = Rotation::ring;
};

/// How gradients of such stages are reduced. `pipelined`: there are several stages.
ReducerOptions reducer_options_of(const StageOptions& options, bool pipelined);

}  // namespace tessera::parallel
