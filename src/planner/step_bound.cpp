// SPDX-License-Identifier: Apache-2.0
#include "step_bound.hpp"

#include "data_parallel_time.hpp"
#include "kept_bytes.hpp"

namespace tessera::planner {
namespace {

/// Of sums in another order than a price has.
constexpr double kRounding = 1 - 1e-9;

double mixtures_of(const Workload& work) {
  return static_cast<double>(work.model.mixture_layers());
}

double dense_of(const Workload& work) {
  return static_cast<double>(work.model.layers) - mixtures_of(work);
}

bool last_is_mixture(const Workload& work) { return work.model.is_mixture(work.model.layers - 1); }

Params params_of(const Workload& work, Part part) {
  switch (part) {
    case Part::embedding:
      return params_of_embedding(work);
    case Part::dense:
      return params_of_block(work, false);
    case Part::mixture:
      return params_of_block(work, true);
    case Part::predictor:
      return params_of_block(work, last_is_mixture(work));
    case Part::head:
      return params_of_head(work);
  }
  return {};
}

PerPart<double> counts_of(const Workload& work) {
  PerPart<double> out;
  out[Part::embedding] = out[Part::head] = 1;
  out[Part::dense] = dense_of(work);
  out[Part::mixture] = mixtures_of(work);
  out[Part::predictor] = static_cast<double>(work.model.predictors);
  return out;
}

/// Of all pipeline ranks together.
Params params_of(const Workload& work) {
  Params out;
  const PerPart<double> counts = counts_of(work);
  for (const Part part : kEachPart)
    if (counts[part] > 0) out.add(params_of(work, part), counts[part]);
  return out;
}

CellTime time_of(const CellClock& clock, Part part) {
  switch (part) {
    case Part::embedding:
      return clock.embedding();
    case Part::dense:
      return clock.block(false);
    case Part::mixture:
      return clock.block(true);
    case Part::predictor:
      return clock.predictor();
    case Part::head:
      return clock.head();
  }
  return {};
}

/// What ranks store of these parameters, and gather for a whole step.
double state_bytes(const Workload& work, const Stack& stack) {
  const Params all = params_of(work);
  const double own = all.dense / shards_of(work) + all.experts / expert_shards_of(work);
  if (work.distributed_optimizer)
    return (2 + stack.gradient_bytes) * all.all() + stack.optimizer_bytes * own;
  double sum = (work.master_bytes + work.gradient_bytes + 2 * work.moment_bytes) * own;
  if (!work.reshard && !reads_stored_weights(work))
    sum += element_bytes(work.precision) * all.all();
  // A pipeline frees each chunk's at another time.
  const bool all_at_once = work.pipeline.ranks() == 1 && work.pipeline.microbatches_a_step() > 1;
  if (all_at_once || !stack.frees_gradients) sum += summed_bytes(work, all);
  return sum;
}

double kept_by_layers(const Workload& work, const Stack& stack) {
  double kept = 0;
  if (dense_of(work) > 0) kept += dense_of(work) * kept_bytes(work, stack, false);
  if (mixtures_of(work) > 0) kept += mixtures_of(work) * kept_bytes(work, stack, true);
  return work.offload || work.offloaded_layers > 0 ? 0 : kept;
}

}  // namespace

StepBound::StepBound(const Workload& work, const Machine& machine, const Stack& stack)
    : machine_(&machine), stack_(&stack), counts_(counts_of(work)) {
  const CellClock clock(work, machine, stack);
  for (const Part part : kEachPart) {
    if (counts_[part] == 0) continue;
    CellTime& time = times_[part] = time_of(clock, part);
    seconds_[part] = {time.forward.total(), time.input.total() + time.recomputed.total(),
                      time.weight.total()};
  }
}

PerPart<PartSeconds> StepBound::parts(const Workload& work, bool waits) const {
  PerPart<PartSeconds> out = seconds_;
  if (work.pipeline.pairs == schedule::Pairs::together)
    for (const Part part : kEachPart) {
      const HiddenSeconds hidden = hidden_of(times_[part], *machine_);
      out[part].forward -= hidden.forward;
      out[part].input -= hidden.input;
    }
  // They may run where the pipeline idles.
  if (stack_->defer_head_wgrad) out[Part::head].weight = 0;
  if (!waits || work.distributed_optimizer) return out;
  for (const Part part : kEachPart) {
    if (counts_[part] == 0) continue;
    const double wait =
        fsdp_unit(work, *machine_, *stack_, params_of(work, part), times_[part]).total();
    out[part].forward += wait / 3;
    out[part].input += wait * 2 / 3;
  }
  return out;
}

// The rank that works longest works as long as the mean one at least.

double StepBound::computation(const Workload& work, std::int64_t sequences) const {
  const double microbatches = static_cast<double>(sequences) * work.tp * work.cp /
                              (static_cast<double>(work.microbatch) * work.gpus);
  const PerPart<PartSeconds> seconds = parts(work, false);
  double sum = 0;
  for (const Part part : kEachPart)
    sum += counts_[part] * (seconds[part].forward + seconds[part].input + seconds[part].weight);
  return sum * microbatches * kRounding;
}

double StepBound::run(const Workload& work, const std::vector<RankShape>& ranks, bool splits,
                      bool waits) const {
  const PerPart<PartSeconds> seconds = parts(work, waits);
  return least_seconds(work.pipeline, ranks, seconds, messages_of(work, *machine_, *stack_),
                       splits) *
         kRounding;
}

double StepBound::pipeline(const Workload& work, const std::vector<RankShape>& ranks,
                           bool splits) const {
  return run(work, ranks, splits, false);
}

double StepBound::seconds(const Workload& work, const std::vector<RankShape>& ranks,
                          bool splits) const {
  const double least = run(work, ranks, splits, true);
  Params mean;
  mean.add(params_of(work), 1.0 / work.pipeline.ranks());
  return least + waiting_seconds(work, least) +
         update_seconds(work, *machine_, *stack_, mean) * kRounding;
}

double least_bytes(const Workload& work, const Stack& stack) {
  return (state_bytes(work, stack) + kept_by_layers(work, stack)) / work.pipeline.ranks();
}

}  // namespace tessera::planner
