// SPDX-License-Identifier: Apache-2.0
#include "data_parallel_time.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "physics.hpp"

namespace tessera::planner {
namespace {

/// Of n standard normal variables (Cramer's expansion).
double expected_most(int n) {
  if (n < 2) return 0;
  const double a = std::sqrt(2 * std::log(n));
  return std::max(0.5, a - (std::log(std::log(n)) + std::log(4 * std::numbers::pi)) / (2 * a));
}

/// Those that wait for each other in every microbatch. A stage waits for its neighbours, and they
/// for theirs: a long pipeline loses as much as four ranks that meet (the growth rate of 1F1B with
/// normal times is 1.05 standard deviations on 16 ranks).
int meeting_ranks(const Workload& work) {
  const bool gathers = !work.distributed_optimizer && work.fsdp > 1 && work.reshard;
  const int shared = std::max(work.tp * work.cp, work.ep * work.etp);
  return (gathers ? work.tp * work.fsdp : shared) * std::min(work.pipeline.ranks(), 4);
}

double replica_seconds(const Workload& work, const Machine& machine, const Stack& stack,
                       const Params& params) {
  if (work.replicate <= 1) return 0;
  const double bytes = params.all() / work.fsdp * stack.reduce_bytes;
  return all_reduce_seconds(machine, bytes, group_of(machine, work.replicate, work.fsdp * work.tp));
}

/// Are whole gradients of microbatches added on each rank?
bool summed_whole(const Workload& work, int shards) {
  return shards == 1 || work.unsharded_gradients;
}

/// What the host waits less because it runs ahead while `sums` seconds of gradients are added: not
/// above zero.
double caught_up(const Machine& machine, const CellTime& time, double sums) {
  if (machine.host) return 0;
  const double whole = time.forward.total() + time.backward();
  const double busy = whole - time.forward[Category::host] - time.input[Category::host];
  return longer(busy + sums, launches_within(whole, busy)) - whole - sums;
}

}  // namespace

Traffic traffic_of(const Workload& work, const Machine& machine, const Stack& stack,
                   const Params& params) {
  const Group all = group_of(machine, shards_of(work), work.tp);
  const double share = stack.gather_bytes / 2;  // of what is gathered
  Traffic out{gather_seconds(machine, params.dense_gathered * share, all),
              gather_seconds(machine, params.dense * stack.reduce_bytes, all)};
  if (params.experts <= 0) return out;
  const Group few = group_of(machine, expert_shards_of(work), work.ep * work.etp);
  out.gather +=
      gather_seconds(machine, params.experts * element_bytes(work.precision) * share, few);
  out.reduce += gather_seconds(machine, params.experts * stack.reduce_bytes, few);
  return out;
}

namespace {

/// Weights that are gathered in bytes are rounded before each gather, and read once a step for
/// their scales.
double rounding_seconds(const Workload& work, const Machine& machine, const Params& params) {
  if (!work.in_bytes) return 0;
  const double once_a_step = 1.0 / work.pipeline.microbatches_a_step();
  const double gathers = work.reshard ? 2 : once_a_step;
  const double own = params.dense / work.fsdp;
  return stream_seconds(
      machine, own * (gathers * (work.master_bytes + 1) + once_a_step * work.master_bytes));
}

}  // namespace

Times fsdp_unit(const Workload& work, const Machine& machine, const Stack& stack,
                const Params& params, const CellTime& time) {
  Times out;
  const double once_a_step = 1.0 / work.pipeline.microbatches_a_step();
  const double summed = (summed_whole(work, work.fsdp) ? params.dense : 0) +
                        (summed_whole(work, expert_shards_of(work)) ? params.experts : 0);
  const double moved = std::max(0.0, stack.sum_traffic_bytes - 4 * once_a_step);
  out[Category::copies] = stream_seconds(machine, summed * moved);
  out[Category::host] = caught_up(machine, time, out[Category::copies]);
  out[Category::quantise] += rounding_seconds(work, machine, params);
  if (work.fsdp * work.replicate == 1) return out;
  const double gathers = work.reshard ? 1 : once_a_step;
  const double reductions = work.unsharded_gradients ? once_a_step : 1;
  const Traffic traffic = traffic_of(work, machine, stack, params);
  const double forward = time.forward.total(), backward = time.backward();
  const double there = gathers * traffic.gather;
  const double back = (work.reshard ? traffic.gather : 0) + reductions * traffic.reduce +
                      once_a_step * replica_seconds(work, machine, stack, params);
  out[Category::dp] = std::max(0.0, there - forward) + std::max(0.0, back - backward) +
                      stack.overlap_tax * (std::min(there, forward) + std::min(back, backward));
  out[Category::dp] += fsdp_calls(work) * turn_seconds(machine);
  if (work.fsdp == 1) return out;  // whole weights stay where they are
  const double copied = stack.fsdp_copies * params.dense_gathered * stack.gather_bytes;
  out[Category::copies] += stream_seconds(machine, copied) * (work.reshard ? 3 : 2 * gathers);
  return out;
}

double fsdp_calls(const Workload& work) {
  if (work.fsdp * work.replicate == 1) return 0;
  const double once_a_step = 1.0 / work.pipeline.microbatches_a_step();
  const double gathers = work.fsdp == 1 ? 0 : work.reshard ? 2 : once_a_step;
  return gathers + (work.unsharded_gradients || work.fsdp == 1 ? once_a_step : 1);
}

Times distributed_optimizer(const Workload& work, const Machine& machine, const Stack& stack,
                            schedule::PipelineRank rank, double forward, double backward) {
  Times out;
  if (work.data_parallel() * work.cp == 1) return out;
  const Traffic traffic = traffic_of(work, machine, stack, params_of_rank(work, rank));
  const int chunks = work.pipeline.chunks();
  double units = 0;
  for (const schedule::StageIndex stage : work.pipeline.map.stages_of(rank)) {
    const StageContent& content = work.pipeline.stages[stage];
    units += content.blocks() + (content.embedding ? 1 : 0) + (content.head ? 1 : 0);
  }
  // With chunks, the collectives of one run beside several microbatches of the others.
  const double window = chunks == 1 ? 1 : work.pipeline.ranks();
  const auto exposed = [&](double comm, double busy) {
    // The first bucket has nothing in front of it, the last nothing behind it.
    return std::max(0.0, comm - busy * window) + std::min(comm, busy * window) * stack.overlap_tax +
           0.5 * comm / std::max(1.0, units);
  };
  out[Category::dp] = exposed(traffic.reduce, backward) + exposed(traffic.gather, forward);
  return out;
}

double update_seconds(const Workload& work, const Machine& machine, const Stack& stack,
                      const Params& params) {
  const double own = params.dense / shards_of(work) + params.experts / expert_shards_of(work);
  // Of weights and gradients, each is read or written twice; of moments, four times.
  const double share =
      work.distributed_optimizer
          ? 1
          : (2 * work.master_bytes + 2 * work.gradient_bytes + 4 * work.moment_bytes) / 32;
  return stream_seconds(machine, own * share * stack.optimizer_traffic_bytes) +
         stack.step_ms * 1e-3;
}

double waiting_seconds(const Workload& work, double run_seconds) {
  // Delayed scaling takes the largest value over all ranks after each microbatch.
  const int ranks = work.precision == Precision::fp8_delayed ? work.gpus : meeting_ranks(work);
  const double each = expected_most(ranks);
  const double once = std::max(0.0, expected_most(work.gpus) - each);
  return run_seconds * physics::kJitter *
         (each + once / std::sqrt(work.pipeline.microbatches_a_step()));
}

}  // namespace tessera::planner
