// SPDX-License-Identifier: Apache-2.0
#include "step_bound.hpp"

#include "data_parallel_time.hpp"
#include "kept_bytes.hpp"

namespace tessera::planner {
namespace {

double mixtures_of(const Workload& work) {
  return static_cast<double>(work.model.mixture_layers());
}

double dense_of(const Workload& work) {
  return static_cast<double>(work.model.layers) - mixtures_of(work);
}

bool last_is_mixture(const Workload& work) { return work.model.is_mixture(work.model.layers - 1); }

/// Of all pipeline ranks together.
Params params_of(const Workload& work) {
  Params out = params_of_embedding(work);
  out.add(params_of_head(work));
  if (dense_of(work) > 0) out.add(params_of_block(work, false), dense_of(work));
  if (mixtures_of(work) > 0) out.add(params_of_block(work, true), mixtures_of(work));
  if (work.model.predictors > 0)
    out.add(params_of_block(work, last_is_mixture(work)),
            static_cast<double>(work.model.predictors));
  return out;
}

}  // namespace

StepBound::StepBound(const Workload& work, const Machine& machine, const Stack& stack)
    : machine_(&machine), stack_(&stack) {
  const CellClock clock(work, machine, stack);
  dense_.count = dense_of(work);
  if (dense_.count > 0) dense_.time = clock.block(false);
  mixture_.count = mixtures_of(work);
  if (mixture_.count > 0) mixture_.time = clock.block(true);
  predictor_.count = static_cast<double>(work.model.predictors);
  if (predictor_.count > 0) predictor_.time = clock.predictor();
  embedding_ = {clock.embedding(), 1};
  head_ = {clock.head(), 1};
}

double StepBound::of_microbatch(const Workload& work, bool waits) const {
  double sum = 0;
  const auto add = [&](const Part& part, const Params& params) {
    double seconds = part.time.forward.total() + part.time.backward();
    if (waits && !work.distributed_optimizer)
      seconds += fsdp_unit(work, *machine_, *stack_, params, part.time).total();
    sum += part.count * seconds;
  };
  add(embedding_, params_of_embedding(work));
  if (dense_.count > 0) add(dense_, params_of_block(work, false));
  if (mixture_.count > 0) add(mixture_, params_of_block(work, true));
  if (predictor_.count > 0) add(predictor_, params_of_block(work, last_is_mixture(work)));
  add(head_, params_of_head(work));
  // They may run where the pipeline idles.
  if (stack_->defer_head_wgrad) sum -= head_.time.weight.total();
  return sum;
}

// The rank that works longest works as long as the mean one at least.

double StepBound::computation(const Workload& work, std::int64_t sequences) const {
  const double microbatches = static_cast<double>(sequences) * work.tp * work.cp /
                              (static_cast<double>(work.microbatch) * work.gpus);
  return of_microbatch(work, false) * microbatches;
}

double StepBound::seconds(const Workload& work) const {
  const double run =
      of_microbatch(work, true) * work.pipeline.microbatches_a_step() / work.pipeline.ranks();
  Params mean;
  mean.add(params_of(work), 1.0 / work.pipeline.ranks());
  return run + waiting_seconds(work, run) + update_seconds(work, *machine_, *stack_, mean);
}

double least_bytes(const Workload& work, const Stack& stack) {
  const Params all = params_of(work);
  double sum = 0;
  if (work.distributed_optimizer) {
    sum = (2 + stack.gradient_bytes) * all.all() +
          stack.optimizer_bytes *
              (all.dense / shards_of(work) + all.experts / expert_shards_of(work));
  } else {
    sum = 4 * work.master_bytes *
          (all.dense / shards_of(work) + all.experts / expert_shards_of(work));
    if (!work.reshard) sum += (work.precision == Precision::f32 ? 4 : 2) * all.all();
    if (work.unsharded_gradients) sum += work.master_bytes * all.all();
  }
  double kept = 0;
  if (dense_of(work) > 0) kept += dense_of(work) * kept_bytes(work, false);
  if (mixtures_of(work) > 0) kept += mixtures_of(work) * kept_bytes(work, true);
  if (work.offloaded_layers > 0) kept = 0;
  return (sum + kept) / work.pipeline.ranks();
}

}  // namespace tessera::planner
