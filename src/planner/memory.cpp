// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/memory.hpp"

#include <algorithm>

#include "held_bytes.hpp"
#include "kept_bytes.hpp"
#include "physics.hpp"
#include "rank_params.hpp"
#include "step_bound.hpp"

namespace tessera::planner {
namespace {

using schedule::PipelineRank;
using schedule::StageIndex;

/// Masters, gradients and moments of a shard, and what is gathered beside them.
void add_fsdp(const Workload& work, const RankParams& params, Memory& out) {
  const double own =
      params.all.dense / shards_of(work) + params.all.experts / expert_shards_of(work);
  out.weights = work.master_bytes * own;
  out.gradients = work.gradient_bytes * own;
  out.optimizer = 2 * work.moment_bytes * own;
  out.gathered = gathered_bytes(work, params);
}

void add_distributed_optimizer(const Workload& work, const Stack& stack, const Params& all,
                               Memory& out) {
  out.weights = 2 * all.all();
  out.gradients = stack.gradient_bytes * all.all();
  out.optimizer =
      stack.optimizer_bytes * (all.dense / shards_of(work) + all.experts / expert_shards_of(work));
}

/// Of a stage, what the block that runs keeps is on the device, and that of the one before.
double most_on_device(const Workload& work, const Stack& stack, PipelineRank rank) {
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
  const RankParams params = rank_params(work, rank);
  if (work.distributed_optimizer)
    add_distributed_optimizer(work, stack, params.all, out);
  else
    add_fsdp(work, params, out);
  out.gathered += whole_gradients(work, stack, params.all, held);
  const OnDevice left = left_on_device(work, stack, rank);
  out.on_host = work.offload ? held.most_kept - left(held.most_kept) : 0;
  out.activations = left(held.kept) + held.owed;
  return out;
}

Memory memory_of(const Workload& work, const Stack& stack, PipelineRank rank,
                 const BytesOfStages& bytes) {
  return memory_of_rank(work, stack, rank,
                        most_held(work.pipeline, rank, bytes, left_on_device(work, stack, rank)));
}

}  // namespace

OnDevice left_on_device(const Workload& work, const Stack& stack, PipelineRank rank) {
  if (work.offload)
    return [most = most_on_device(work, stack, rank)](double kept) { return std::min(kept, most); };
  return [share = share_on_device(work)](double kept) { return share * kept; };
}

double Memory::total() const {
  double sum = 0;
  for (const MemoryTerm& term : kMemoryTerms) sum += this->*term.bytes;
  return sum;
}

Memory memory_of(const Workload& work, const Stack& stack, PipelineRank rank) {
  return memory_of(work, stack, rank, stage_bytes(work, stack));
}

Memory memory_of(const Workload& work, const Stack& stack) {
  const BytesOfStages bytes = stage_bytes(work, stack);
  Memory most;
  for (const PipelineRank rank : work.pipeline.map.each_rank()) {
    const Memory here = memory_of(work, stack, rank, bytes);
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
