// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/memory.hpp"

#include <algorithm>

#include "held_bytes.hpp"
#include "kept_bytes.hpp"
#include "physics.hpp"
#include "shares.hpp"
#include "step_bound.hpp"

namespace tessera::planner {
namespace {

using schedule::PipelineRank;
using schedule::StageIndex;

/// A block and those ahead of it.
double blocks_ahead(const Workload& work) {
  return 1 + static_cast<double>(std::min<std::int64_t>(work.prefetch_units, work.model.layers));
}

/// Masters, gradients and moments of a shard, and what is gathered beside them.
void add_fsdp(const Workload& work, const Params& all, const Params& largest_block,
              const Params& ends, Memory& out) {
  const double own = all.dense / shards_of(work) + all.experts / expert_shards_of(work);
  out.weights = work.master_bytes * own;
  out.gradients = work.gradient_bytes * own;
  out.optimizer = 2 * work.moment_bytes * own;
  // Freed: a block and those ahead of it, the embedding and the output; and the gradients of one
  // block.
  if (!reads_stored_weights(work))
    out.gathered = work.reshard ? blocks_ahead(work) * gathered_bytes(work, largest_block) +
                                      gathered_bytes(work, ends)
                                : gathered_bytes(work, all);
  if (work.reshard) out.gathered += work.gradient_bytes * largest_block.all();
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

/// While the gradients of a block are added up, those of the units behind it are being reduced, and
/// its own are there in both types; its kernels work before that. If this is more than what `out`
/// has, which is for the time of the loss, it takes its place.
void add_reductions(const Workload& work, const Stack& stack, const Params& block,
                    const Params& head, double working, Memory& out) {
  if (stack.reductions_behind == 0 || work.pipeline.ranks() > 1 || !work.reshard ||
      work.unsharded_gradients || is_unsharded(work))
    return;
  const double own = reduced_bytes(work, block);
  const double units =
      std::min(stack.reductions_behind, static_cast<double>(work.model.layers) - 1);
  const double behind = own * (units - 1) + std::max(own, reduced_bytes(work, head));
  // The output's weights stay.
  const double gathered =
      blocks_ahead(work) * gathered_bytes(work, block) + gathered_bytes(work, head);
  const double added = own + element_bytes(work.precision) * block.all();
  const double most = gathered + behind + std::max(added, working);
  if (most <= out.gathered + out.loss + out.working) return;
  out.loss = 0;
  out.working = std::max(0.0, working - added);
  out.gathered = most - out.working;
}

/// Of activations, where those of some layers go to the host.
double share_on_device(const Workload& work) {
  return work.offloaded_layers > 0 ? std::max(0.1, 1 - static_cast<double>(work.offloaded_layers) /
                                                           static_cast<double>(work.model.layers))
                                   : 1;
}

/// Other programs keep the memory of gradients that are reduced, as what they report has it.
double whole_gradients(const Workload& work, const Stack& stack, const Params& all,
                       const Held& held) {
  return stack.frees_gradients ? held.gradients : summed_bytes(work, all);
}

Memory memory_of_rank(const Workload& work, const Stack& stack, PipelineRank rank,
                      const Held& held) {
  Memory out;
  out.loss = held.loss, out.working = held.working;
  Params all, largest, ends, head;
  double working = 0;
  for (const StageIndex index : work.pipeline.map.stages_of(rank)) {
    const StageContent& stage = work.pipeline.stages[index];
    all.add(params_of_stage(work, stage));
    for (const bool mixture : {false, true}) {
      if ((mixture ? stage.mixtures : stage.dense) <= 0) continue;
      const Params block = params_of_block(work, mixture);
      if (block.all() > largest.all()) largest = block;
      working = std::max(working, working_bytes(work, stack, mixture));
    }
    if (stage.embedding && !stores_what_layers_read(work)) ends.add(params_of_embedding(work));
    if (stage.head) head = params_of_head(work);
  }
  ends.add(head);
  if (work.distributed_optimizer)
    add_distributed_optimizer(work, stack, all, out);
  else
    add_fsdp(work, all, largest, ends, out);
  out.gathered += whole_gradients(work, stack, all, held);
  // A tied weight waits for the embedding's gradient.
  if (work.model.tied) head = params_of_embedding(work);
  add_reductions(work, stack, largest, head, working, out);
  const double left =
      work.offload ? std::min(held.kept, left_on_device(work, stack, rank)) : held.kept;
  out.on_host = held.kept - left;
  out.activations = left * share_on_device(work) + held.owed;
  return out;
}

}  // namespace

double Memory::total() const {
  double sum = 0;
  for (const MemoryTerm& term : kMemoryTerms) sum += this->*term.bytes;
  return sum;
}

Memory memory_of(const Workload& work, const Stack& stack, PipelineRank rank) {
  return memory_of_rank(work, stack, rank,
                        most_held(work.pipeline, rank, stage_bytes(work, stack)));
}

Memory memory_of(const Workload& work, const Stack& stack) {
  Memory most;
  for (const PipelineRank rank : work.pipeline.map.each_rank()) {
    const Memory here = memory_of(work, stack, rank);
    if (here.total() > most.total()) most = here;
  }
  return most;
}

double least_bytes(const Workload& work, const Stack& stack, const RankMoments& moments) {
  // Of what goes to the host, nobody knows when most is left.
  if (work.offload || work.offloaded_layers > 0) return least_bytes(work, stack);
  const BytesOfStages bytes = stage_bytes(work, stack);
  double most = 0;
  for (const PipelineRank rank : work.pipeline.map.each_rank()) {
    Held held;
    for (const Moment& moment : moments[static_cast<std::size_t>(rank.value())])
      if (const Held at = held_at(moment, bytes); at.total() > held.total()) held = at;
    most = std::max(most, memory_of_rank(work, stack, rank, held).total());
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
