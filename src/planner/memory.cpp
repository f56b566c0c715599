// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/memory.hpp"

#include <algorithm>
#include <limits>

#include "kept_bytes.hpp"
#include "physics.hpp"
#include "pipeline_time.hpp"
#include "shares.hpp"
#include "step_bound.hpp"

namespace tessera::planner {
namespace {

using schedule::PipelineRank;
using schedule::StageIndex;

/// Masters, gradients and moments of a shard, and what is gathered beside them.
void add_fsdp(const Workload& work, const Params& all, const Params& largest_block,
              const Params& ends, Memory& out) {
  const double own = all.dense / shards_of(work) + all.experts / expert_shards_of(work);
  out.weights = work.master_bytes * own;
  out.gradients = work.gradient_bytes * own;
  out.optimizer = 2 * work.moment_bytes * own;
  // Freed: a block and those ahead of it, the embedding and the output; and the gradients of one
  // block.
  const double blocks =
      1 + static_cast<double>(std::min<std::int64_t>(work.prefetch_units, work.model.layers));
  if (!reads_stored_weights(work))
    out.gathered = work.reshard
                       ? blocks * gathered_bytes(work, largest_block) + gathered_bytes(work, ends)
                       : gathered_bytes(work, all);
  if (work.reshard) out.gathered += work.gradient_bytes * largest_block.all();
  // Without shards, the gradients of microbatches are added where the optimizer reads them.
  if (work.unsharded_gradients && !is_unsharded(work))
    out.gathered += work.gradient_bytes * all.all();
}

void add_distributed_optimizer(const Workload& work, const Stack& stack, const Params& all,
                               Memory& out) {
  out.weights = 2 * all.all();
  out.gradients = stack.gradient_bytes * all.all();
  out.optimizer =
      stack.optimizer_bytes * (all.dense / shards_of(work) + all.experts / expert_shards_of(work));
}

/// Of a stage, what the block that runs keeps is on the device, and that of the one before.
double left_on_device(const Workload& work, const Stack& stack, PipelineRank rank) {
  double left = 0;
  for (const StageIndex index : work.pipeline.map.stages_of(rank)) {
    const StageContent& stage = work.pipeline.stages[index];
    double block = 0;
    if (stage.dense > 0) block = kept_bytes(work, stack, false);
    if (stage.mixtures > 0) block = std::max(block, kept_bytes(work, stack, true));
    left += block;
  }
  return 2 * left;
}

/// `activations`: what is kept meanwhile.
Memory memory_of_rank(const Workload& work, const Stack& stack, PipelineRank rank,
                      double activations) {
  Memory out;
  Params all, largest, ends;
  for (const StageIndex index : work.pipeline.map.stages_of(rank)) {
    const StageContent& stage = work.pipeline.stages[index];
    all.add(params_of_stage(work, stage));
    for (const bool mixture : {false, true}) {
      if ((mixture ? stage.mixtures : stage.dense) <= 0) continue;
      const Params block = params_of_block(work, mixture);
      if (block.all() > largest.all()) largest = block;
      out.working = std::max(out.working, working_bytes(work, stack, mixture));
    }
    if (stage.embedding && !stores_what_layers_read(work)) ends.add(params_of_embedding(work));
    if (stage.head) ends.add(params_of_head(work));
    if (stage.head) out.loss = loss_bytes(work, stack);
  }
  // The last forward of a pair may compute its loss beside a backward's block.
  const bool pairs = work.pipeline.pairs == schedule::Pairs::together;
  if (!stack.loss_beside_blocks && !pairs) out.working = std::max(0.0, out.working - out.loss);
  if (work.distributed_optimizer)
    add_distributed_optimizer(work, stack, all, out);
  else
    add_fsdp(work, all, largest, ends, out);
  out.activations = activations;
  if (work.offload) {
    out.activations = std::min(activations, left_on_device(work, stack, rank));
    out.on_host = activations - out.activations;
  }
  if (work.offloaded_layers > 0)
    out.activations *= std::max(0.1, 1 - static_cast<double>(work.offloaded_layers) /
                                             static_cast<double>(work.model.layers));
  return out;
}

}  // namespace

double Memory::total() const {
  double sum = 0;
  for (const MemoryTerm& term : kMemoryTerms) sum += this->*term.bytes;
  return sum;
}

Memory memory_of(const Workload& work, const Stack& stack, PipelineRank rank) {
  const double kept = most_in_flight(work.pipeline, rank, [&](StageIndex stage) {
    return kept_bytes(work, stack, work.pipeline.stages[stage]);
  });
  return memory_of_rank(work, stack, rank, kept);
}

Memory memory_of(const Workload& work, const Stack& stack) {
  Memory most;
  for (const PipelineRank rank : work.pipeline.map.each_rank()) {
    const Memory here = memory_of(work, stack, rank);
    if (here.total() > most.total()) most = here;
  }
  return most;
}

double least_bytes(const Workload& work, const Stack& stack, const std::vector<int>& in_flight) {
  double most = 0;
  for (const PipelineRank rank : work.pipeline.map.each_rank()) {
    double least = std::numeric_limits<double>::infinity();
    for (const StageIndex stage : work.pipeline.map.stages_of(rank))
      least = std::min(least, kept_bytes(work, stack, work.pipeline.stages[stage]));
    const double kept = least * in_flight[static_cast<std::size_t>(rank.value())];
    most = std::max(most, memory_of_rank(work, stack, rank, kept).total());
  }
  return most;
}

bool fits(const Memory& memory, const Machine& machine) { return may_fit(memory.total(), machine); }

double runtime_bytes(const Machine& machine) {
  return machine.host ? physics::kHostRuntimeBytes : physics::kRuntimeBytes;
}

bool may_fit(double least_bytes, const Machine& machine) {
  return least_bytes + runtime_bytes(machine) <= machine.memory_bytes;
}

}  // namespace tessera::planner
