// SPDX-License-Identifier: Apache-2.0
#include "held_bytes.hpp"

#include <algorithm>

#include "kept_bytes.hpp"
#include "pipeline_time.hpp"
#include "rank_params.hpp"
#include "tessera/base/error.hpp"

namespace tessera::planner {
namespace {

using schedule::ActionKind;
using schedule::PipelineRank;
using schedule::StageIndex;

bool gives_weight_gradients(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::weight_gradient;
}

/// One microbatch of each stage. Gradients of several are added up.
Moment one_of_each(const Pipeline& pipeline, PipelineRank rank, int microbatches, bool sums) {
  Moment out;
  for (const StageIndex stage : pipeline.map.stages_of(rank))
    out.push_back({stage, microbatches, 0, sums});
  return out;
}

/// The last of those with the most of all, and of those with the most that is owed: gradients of
/// more stages are there.
std::vector<Moment> fullest(const std::vector<StageIndex>& stages, const schedule::ActionList& list,
                            int rounds) {
  HeldCounts counts(stages, list, rounds);
  std::vector<Moment> out{counts.now(), counts.now()};
  int kept = 0, owed = 0;
  for (const schedule::Action& action : list) {
    counts.run(action);
    if (counts.kept() >= kept) kept = counts.kept(), out[0] = counts.now();
    if (counts.owed() >= owed) owed = counts.owed(), out[1] = counts.now();
  }
  if (owed == 0) out.pop_back();
  return out;
}

Held alone(Held held) {
  held.most_kept = held.kept;
  return held;
}

void add_reductions(const Workload& work, const Stack& stack, PipelineRank rank,
                    BytesOfStages& bytes) {
  double working = 0;
  for (const StageIndex stage : work.pipeline.map.stages_of(rank))
    working = std::max(working, bytes.stages[stage].working);
  const double reducing = reducing_bytes(work, stack, rank_params(work, rank), working);
  for (const StageIndex stage : work.pipeline.map.stages_of(rank))
    bytes.stages[stage].reducing = reducing;
}

}  // namespace

BytesOfStages stage_bytes(const Workload& work, const Stack& stack) {
  BytesOfStages out;
  // The last forward of a pair may compute its loss beside a backward's block.
  out.loss_beside_blocks =
      stack.loss_beside_blocks || work.pipeline.pairs == schedule::Pairs::together;
  for (const StageContent& stage : work.pipeline.stages) {
    StageBytes bytes{kept_bytes(work, stack, stage), owed_bytes(work, stage)};
    if (stack.frees_gradients) bytes.gradients = summed_bytes(work, params_of_stage(work, stage));
    if (stage.head) {
      bytes.loss = loss_bytes(work, stack);
      bytes.logits = waiting_logits_bytes(work);
    }
    if (stage.dense > 0) bytes.working = working_bytes(work, stack, false);
    if (stage.mixtures > 0)
      bytes.working = std::max(bytes.working, working_bytes(work, stack, true));
    out.stages.push_back(bytes);
  }
  for (const PipelineRank rank : work.pipeline.map.each_rank())
    add_reductions(work, stack, rank, out);
  return out;
}

Held held_at(const Moment& moment, const BytesOfStages& bytes) {
  Held out;
  double reducing = 0, running = 0;
  for (const StageCount& count : moment) {
    const StageBytes& each = bytes.stages[count.stage];
    out.kept += count.kept * each.kept;
    out.owed += count.owed * each.owed;
    if (count.kept > 0) {
      running += each.loss;
      out.loss += each.loss + (count.kept - 1) * each.logits;
    }
    if (count.sums) out.gradients += each.gradients;
    out.working = std::max(out.working, each.working);
    reducing = std::max(reducing, each.reducing);
  }
  // The loss of the microbatch that runs is gone when blocks compute; what others wait with is not.
  const double gone = bytes.loss_beside_blocks ? 0 : running;
  out.working = std::max({0.0, out.working - gone, reducing - gone});
  return out;
}

HeldCounts::HeldCounts(const std::vector<StageIndex>& stages, const schedule::ActionList& list,
                       int rounds)
    : keeps_gradients_(rounds > 1) {
  for (const StageIndex stage : stages) now_.push_back({stage, 0, 0, keeps_gradients_});
  left_.resize(stages.size());
  for (const schedule::Action& action : list)
    if (gives_weight_gradients(action.kind)) ++left_[place_of(action.stage)];
}

std::size_t HeldCounts::place_of(StageIndex stage) const {
  const auto found = std::ranges::find(now_, stage, &StageCount::stage);
  TESSERA_EXPECT(found != now_.end(), "stage {} is on another rank", stage);
  return static_cast<std::size_t>(found - now_.begin());
}

void HeldCounts::run(const schedule::Action& action) {
  const std::size_t place = place_of(action.stage);
  StageCount& count = now_[place];
  if (action.kind == ActionKind::forward) ++count.kept;
  if (schedule::is_backward(action.kind)) --count.kept;
  if (action.kind == ActionKind::input_gradient) ++count.owed;
  if (action.kind == ActionKind::weight_gradient) --count.owed;
  // The last ones are reduced unit by unit, as they come.
  if (gives_weight_gradients(action.kind)) count.sums = keeps_gradients_ || --left_[place] > 0;
}

int HeldCounts::kept() const {
  int sum = 0;
  for (const StageCount& count : now_) sum += count.kept + count.owed;
  return sum;
}

int HeldCounts::owed() const {
  int sum = 0;
  for (const StageCount& count : now_) sum += count.owed;
  return sum;
}

Held most_held(const Pipeline& pipeline, PipelineRank rank, const BytesOfStages& bytes,
               const OnDevice& on_device) {
  if (pipeline.ranks() == 1)
    return alone(
        held_at(one_of_each(pipeline, rank, 1, pipeline.microbatches_a_step() > 1), bytes));
  const bool keeps_all = pipeline.kind && traits_of(*pipeline.kind).keeps_all;
  const int shorter = 3 * pipeline.ranks() + pipeline.microbatches % pipeline.ranks();
  const int microbatches =
      keeps_all ? pipeline.microbatches : std::min(pipeline.microbatches, shorter);
  const schedule::ActionList& list = (*lists_of(pipeline, microbatches))[rank];
  HeldCounts counts(pipeline.map.stages_of(rank), list, pipeline.rounds);
  const auto there = [&](const Held& held) {
    return held.total() - held.kept + on_device(held.kept);
  };
  Held most;
  double most_kept = 0;
  for (const schedule::Action& action : list) {
    if (!schedule::computes(action.kind)) continue;
    counts.run(action);
    const Held now = held_at(counts.now(), bytes);
    most_kept = std::max(most_kept, now.kept);
    if (there(now) > there(most)) most = now;
  }
  most.most_kept = most_kept;
  return most;
}

RankMoments full_moments(const Pipeline& pipeline, const schedule::Traits* schedule) {
  const int ranks = pipeline.ranks(), all = pipeline.microbatches;
  RankMoments out;
  const bool simple = ranks == 1 || (!pipeline.lists && !schedule);
  if (simple || (!pipeline.lists && schedule->keeps_all)) {
    const bool sums = ranks == 1 && pipeline.microbatches_a_step() > 1;
    for (const PipelineRank rank : pipeline.map.each_rank())
      out.push_back({one_of_each(pipeline, rank, simple ? 1 : all, sums)});
    return out;
  }
  schedule::ActionLists lists;
  if (!pipeline.lists) {
    // The steady state holds most. Rounds keep their size.
    const int round = schedule->equal_rounds ? all / std::max(1, all / ranks) : ranks;
    lists = compute_orders(schedule->kind, pipeline.map, std::min(all, 3 * round + all % round));
  }
  for (const PipelineRank rank : pipeline.map.each_rank())
    out.push_back(fullest(pipeline.map.stages_of(rank),
                          (pipeline.lists ? *pipeline.lists : lists)[rank], pipeline.rounds));
  return out;
}

}  // namespace tessera::planner
