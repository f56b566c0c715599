// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/price.hpp"

#include <algorithm>

#include "data_parallel_time.hpp"
#include "pipeline_time.hpp"

namespace tessera::planner {
namespace {

using schedule::PipelineRank;
using schedule::StageIndex;

/// One microbatch on one stage.
struct StageTime {
  schedule::Durations durations;
  Times times;                       ///< forward and backward, with what is waited for
  double forward = 0, backward = 0;  ///< without waiting
  double head_wgrad = 0;             ///< of `durations.weight`
  double recomputed = 0;             ///< of `durations.input`, without waiting
  double calls = 0;                  ///< in which a rank waits for others
  double hidden = 0;                 ///< of `times`, in all pairs of a step
};

/// Prices one step. Keeps references to what it is given.
class StepClock {
 public:
  StepClock(const Workload& work, const Machine& machine, const Stack& stack)
      : work_(work),
        machine_(machine),
        stack_(stack),
        clock_(work, machine, stack),
        messages_(messages_of(work, machine, stack)) {
    time_cells();
    for (const StageIndex stage : work.pipeline.map.each_stage())
      stages_.push_back(stage_time(stage));
    defer_head();
    set_transfers();
    hide_exchanges();
    alone_ = pipeline_seconds(work.pipeline, durations());
    run_ = std::max(alone_, crowd() * (mean_work() + mean_messages()));
    busiest_ = busiest_rank();
    add_data_parallel();
  }

  double seconds() const { return run_ + tail_.total(); }
  StageDurations durations() const {
    StageDurations out;
    for (const StageTime& stage : stages_) out.push_back(stage.durations);
    return out;
  }
  /// 1 - work of the mean rank / time of the pipeline.
  double bubble() const { return 1 - crowd() * mean_work() / run_; }
  double idle_share() const { return 1 - mean_work() / alone_; }
  /// Of the busiest rank, by category.
  Times categories() const {
    Times out = tail_;
    for (const StageIndex stage : work_.pipeline.map.stages_of(busiest_))
      out.add(stages_[stage].times, crowd() * work_.pipeline.microbatches_a_step());
    out[Category::ep] -= crowd() * hidden_of(busiest_);
    out[Category::pp] += std::max(crowd() * mean_messages(), run_ - crowd() * work_of(busiest_));
    return out;
  }
  /// Of the busiest rank's microbatches, while others do not take its core.
  double sum_of(double StageTime::*part) const {
    double sum = 0;
    for (const StageIndex stage : work_.pipeline.map.stages_of(busiest_))
      sum += stages_[stage].*part;
    return sum * work_.pipeline.microbatches_a_step();
  }
  double crowded(double StageTime::*part) const { return crowd() * sum_of(part); }

 private:
  void time_cells() {
    for (const StageContent& stage : work_.pipeline.stages) {
      if (stage.dense > 0 && dense_.forward.total() == 0) dense_ = clock_.block(false);
      if (stage.mixtures > 0 && mixture_.forward.total() == 0) mixture_ = clock_.block(true);
      if (stage.predictors > 0) predictor_ = clock_.predictor();
    }
    embedding_ = clock_.embedding();
    head_ = clock_.head();
  }

  StageTime stage_time(StageIndex index) const {
    const StageContent& stage = work_.pipeline.stages[index];
    CellTime sum;
    Times waits;
    HiddenSeconds hidden;
    const auto add = [&](const CellTime& cell, const Params& params, double count) {
      sum.add(cell, count);
      const HiddenSeconds here = planner::hidden_of(cell, machine_);
      hidden.forward += count * here.forward;
      hidden.input += count * here.input;
      if (work_.distributed_optimizer) return;
      waits.add(fsdp_unit(work_, machine_, stack_, params, cell), count);
      sum.calls += count * fsdp_calls(work_);
    };
    if (stage.embedding) add(embedding_, params_of_embedding(work_), 1);
    if (stage.dense > 0) add(dense_, params_of_block(work_, false), stage.dense);
    if (stage.mixtures > 0) add(mixture_, params_of_block(work_, true), stage.mixtures);
    if (stage.predictors > 0)
      add(predictor_, params_of_block(work_, work_.model.is_mixture(work_.model.layers - 1)),
          static_cast<double>(stage.predictors));
    if (stage.head) add(head_, params_of_head(work_), 1);
    waits[Category::dp] += first_gather(index);
    sum.calls += int{receives_inputs(index)} + int{receives_gradients(index)};
    StageTime out = joined(sum, waits, stage.head);
    out.durations.hidden_forward = hidden.forward;
    out.durations.hidden_input = hidden.input;
    return out;
  }

  StageTime joined(const CellTime& sum, const Times& waits, bool head) const {
    StageTime out;
    out.times.add(sum.forward).add(sum.input).add(sum.weight).add(sum.recomputed).add(waits);
    const double wait = waits.total();
    out.durations.forward = sum.forward.total() + wait / 3;
    out.durations.input = sum.input.total() + sum.recomputed.total() + wait * 2 / 3;
    out.durations.weight = sum.weight.total();
    if (head) out.head_wgrad = head_.weight.total();
    out.recomputed = computed(sum.recomputed);
    out.calls = sum.calls;
    out.forward = computed(sum.forward);
    out.backward = computed(sum.input) + computed(sum.weight) + out.recomputed;
    return out;
  }

  static double computed(const Times& times) {
    return times.total() - times[Category::tp] - times[Category::cp] - times[Category::ep];
  }

  /// Ranks that take turns on a core work one after the other, also where one waits for another.
  double crowd() const { return machine_.host ? machine_.host->crowd : 1; }

  double mean_work() const {
    double sum = 0;
    for (const PipelineRank rank : work_.pipeline.map.each_rank()) sum += work_of(rank);
    return sum / work_.pipeline.ranks();
  }

  /// Of a V-shaped pipeline, one rank has both stages in the middle.
  bool receives_inputs(StageIndex stage) const {
    const schedule::StageMap& map = work_.pipeline.map;
    return stage != map.first() && !map.same_rank(stage - 1, stage);
  }
  bool receives_gradients(StageIndex stage) const {
    const schedule::StageMap& map = work_.pipeline.map;
    return stage != map.last() && !map.same_rank(stage, stage + 1);
  }

  /// What a rank's messages take from those that share its core.
  double mean_messages() const {
    int received = 0;  // of a microbatch, by all ranks
    for (const StageIndex stage : work_.pipeline.map.each_stage())
      received += int{receives_inputs(stage)} + int{receives_gradients(stage)};
    return messages_.shared * received * work_.pipeline.microbatches_a_step() /
           work_.pipeline.ranks();
  }

  /// Of a rank's first unit: nothing hides it.
  double first_gather(StageIndex index) const {
    if (work_.distributed_optimizer || work_.fsdp == 1) return 0;
    if (work_.pipeline.map.stages_of(work_.pipeline.map.rank_of(index)).front() != index) return 0;
    const StageContent& stage = work_.pipeline.stages[index];
    Params unit =
        stage.embedding ? params_of_embedding(work_) : params_of_block(work_, stage.dense == 0);
    unit.experts = 0;
    const double times = work_.reshard ? 1 : 1.0 / work_.pipeline.microbatches_a_step();
    return times * traffic_of(work_, machine_, stack_, unit).gather;
  }

  /// The output's weight gradients wait for the last stage's idle time at the end of a step.
  void defer_head() {
    if (work_.pipeline.ranks() == 1 || !stack_.defer_head_wgrad) return;
    StageTime& last = stages_.back();
    const schedule::Durations& first = stages_[StageIndex(0)].durations;
    const double idle = (work_.pipeline.ranks() - 1) * (first.forward + first.input + first.weight);
    const double all = last.head_wgrad * work_.pipeline.microbatches_a_step();
    if (all > 0) last.durations.weight -= last.head_wgrad * std::min(1.0, idle / all);
  }

  void set_transfers() {
    const double delay = messages_.delay;
    for (const StageIndex stage : work_.pipeline.map.each_stage()) {
      schedule::Durations& durations = stages_[stage].durations;
      durations.transfer = delay;
      if (messages_.blocks && receives_inputs(stage)) durations.forward += delay;
      if (messages_.blocks && receives_gradients(stage)) durations.input += delay;
    }
  }

  void hide_exchanges() {
    const auto pairs = pairs_in(work_.pipeline);
    for (const StageIndex stage : work_.pipeline.map.each_stage()) {
      const schedule::Durations& durations = stages_[stage].durations;
      stages_[stage].hidden = (pairs[stage].forward * durations.hidden_forward +
                               pairs[stage].backward * durations.hidden_input) *
                              work_.pipeline.rounds;
    }
  }

  double hidden_of(PipelineRank rank) const {
    double sum = 0;
    for (const StageIndex stage : work_.pipeline.map.stages_of(rank)) sum += stages_[stage].hidden;
    return sum;
  }

  double work_of(PipelineRank rank) const {
    double sum = 0;
    for (const StageIndex stage : work_.pipeline.map.stages_of(rank))
      sum += stages_[stage].times.total();
    return sum * work_.pipeline.microbatches_a_step() - hidden_of(rank);
  }

  PipelineRank busiest_rank() const {
    PipelineRank most(0);
    for (const PipelineRank rank : work_.pipeline.map.each_rank())
      if (work_of(rank) > work_of(most)) most = rank;
    return most;
  }

  void add_data_parallel() {
    double update = 0;
    for (const PipelineRank rank : work_.pipeline.map.each_rank())
      update =
          std::max(update, update_seconds(work_, machine_, stack_, params_of_rank(work_, rank)));
    tail_[Category::optimizer] = update * crowd();
    tail_[Category::jitter] = waiting_seconds(work_, run_);
    if (!work_.distributed_optimizer) return;
    double forward = 0, backward = 0;
    for (const StageIndex stage : work_.pipeline.map.stages_of(PipelineRank(0))) {
      const schedule::Durations& durations = stages_[stage].durations;
      forward += durations.forward;
      backward += durations.input + durations.weight;
    }
    tail_.add(distributed_optimizer(work_, machine_, stack_, PipelineRank(0), forward, backward));
  }

  const Workload& work_;
  const Machine& machine_;
  const Stack& stack_;
  CellClock clock_;
  MessageSeconds messages_;
  CellTime dense_, mixture_, predictor_, embedding_, head_;
  IndexedVector<StageIndex, StageTime> stages_;
  double alone_ = 0, run_ = 0;  ///< of the pipeline: ranks with cores of their own, and as it is
  PipelineRank busiest_;
  Times tail_;  ///< after the pipeline
};

std::vector<std::pair<std::string, double>> listed(const Times& times) {
  std::vector<std::pair<std::string, double>> out;
  for (std::size_t i = 0; i < kCategories; ++i)
    if (times.seconds[i] > 0) out.emplace_back(name_of(static_cast<Category>(i)), times.seconds[i]);
  std::ranges::sort(out, std::greater<>(), &std::pair<std::string, double>::second);
  return out;
}

}  // namespace

Price price(const Workload& work, const Machine& machine, const Stack& stack) {
  require_products(work.precision, machine);
  const StepClock clock(work, machine, stack);
  Price out;
  out.step_seconds = clock.seconds();
  out.tokens_per_second_per_gpu = work.step_tokens() / out.step_seconds / work.gpus;
  const double peak = machine.peak_of(format_of(work.precision));
  out.mfu_full = out.tokens_per_second_per_gpu * work.model.flops(work.seq, false) / peak;
  out.mfu_causal = out.tokens_per_second_per_gpu * work.model.flops(work.seq, true) / peak;
  out.bubble = clock.bubble();
  out.idle_share = clock.idle_share();
  const Times times = clock.categories();
  out.exposed = {times[Category::tp], times[Category::cp], times[Category::ep], times[Category::pp],
                 times[Category::dp]};
  out.recompute_seconds = clock.crowded(&StageTime::recomputed);
  out.forward_seconds = clock.crowded(&StageTime::forward);
  out.backward_seconds = clock.crowded(&StageTime::backward);
  out.calls = clock.sum_of(&StageTime::calls);
  out.optimizer_seconds = times[Category::optimizer];
  out.memory = memory_of(work, stack);
  out.fits = fits(out.memory, machine);
  out.seconds = listed(times);
  return out;
}

StageDurations stage_seconds(const Workload& work, const Machine& machine, const Stack& stack) {
  require_products(work.precision, machine);
  return StepClock(work, machine, stack).durations();
}

}  // namespace tessera::planner
