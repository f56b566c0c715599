// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/stages.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::parallel {

using mesh::Axis;

namespace {

ReducerOptions reducer_options_of(const StageOptions& options, const schedule::StageMap& map) {
  ReducerOptions reducer = parallel::reducer_options_of(options, map.stages() > 1);
  reducer.first_rank = map.rank_of(map.first());
  reducer.last_rank = map.rank_of(map.last());
  return reducer;
}

}  // namespace

Stages::Stages(const model::Model& model, const plan::StageRanges& ranges,
               const schedule::StageMap& map, mesh::DeviceMesh& mesh, const StageOptions& options)
    : map_(map),
      options_(options),
      numbers_(map.stages_of(pipeline_rank(mesh))),
      reducer_(model, mesh, reducer_options_of(options_, map)) {
  TESSERA_EXPECT(ranges.size() == map.stages() && map.ranks() == mesh.layout().degree(Axis::pp),
                 "{} stages on {} ranks", ranges.size(), map.ranks());
  TiedWeight tied;
  if (map.rank_of(map.first()) == map.rank_of(map.last())) tied.holders = 1;
  for (const schedule::StageIndex number : numbers_) {
    const Range cells = ranges[number];
    stages_.push_back(std::make_unique<Stage>(model, cells, mesh, options_, reducer_, tied));
    if (stages_.back()->first()) tied.home = stages_.back()->weights().tied();
  }
}

Stage& Stages::at(schedule::StageIndex stage) {
  const auto found = std::ranges::find(numbers_, stage);
  TESSERA_EXPECT(found != numbers_.end(), "stage {} is not on this rank", stage);
  return *stages_[static_cast<std::size_t>(found - numbers_.begin())];
}

void Stages::set_batch(std::int64_t batch) { options_.microbatch.batch = batch; }

void Stages::set_reshard_budget(std::int64_t bytes) {
  for (const auto& stage : stages_)
    stage->set_reshard_budget(bytes / static_cast<std::int64_t>(stages_.size()));
}

std::int64_t Stages::scratch_bytes(int microbatches) const {
  std::int64_t bytes = 0;
  for (const auto& stage : stages_) bytes += stage->scratch_bytes(microbatches);
  return bytes;
}

void Stages::on_high_water(const std::function<void()>& look) {
  for (const auto& stage : stages_) stage->on_high_water(look);
}

void Stages::initialize(std::uint64_t seed) {
  for (const auto& stage : stages_) stage->weights().initialize(seed);
}

void Stages::begin_step(int microbatches) {
  for (const auto& stage : stages_) stage->begin_step(microbatches);
  reducer_.begin_step(microbatches);
}

void Stages::finish_gradients() { reducer_.finish(); }

void Stages::end_step(StepEnd how) {
  for (const auto& stage : stages_) {
    if (how == StepEnd::abandoned) stage->begin_step(1);  // which frees its activations
    stage->weights().end_step(how);
  }
  reducer_.end_step(how);
}

GatherCount Stages::gather_count() const {
  GatherCount sum;
  for (const auto& stage : stages_) sum += stage->weights().gather_count();
  return sum;
}

namespace {

/// Puts what `from` has where `into` has nothing.
void fill(std::vector<at::Tensor>& into, const std::vector<at::Tensor>& from) {
  into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!into[i].defined()) into[i] = from[i];
}

}  // namespace

ExpertFigures Stages::take_expert_figures() {
  ExpertFigures figures;
  for (const auto& stage : stages_) {
    fill(figures.loads, stage->experts().take_loads());
    if (const at::Tensor& loss = stage->experts().loss(); loss.defined())
      figures.losses.push_back(loss);
  }
  return figures;
}

void Stages::balance_experts(const std::vector<at::Tensor>& loads) {
  for (const auto& stage : stages_) stage->experts().balance(loads, stage->weights().buffers());
}

Holdings Stages::holdings() {
  Holdings all{params(), {}};
  for (const auto& stage : stages_) fill(all.buffers, stage->weights().buffers());
  return all;
}

std::int64_t Stages::kept_bytes() {
  std::int64_t bytes = 0;
  for (const auto& stage : stages_) bytes += stage->kept_bytes();
  return bytes;
}

Params Stages::params() {
  Params refs;
  for (const auto& stage : stages_)
    std::ranges::move(stage->weights().params(), std::back_inserter(refs));
  return refs;
}

Params Stages::trained_params() {
  Params refs;
  for (const auto& stage : stages_)
    std::ranges::move(stage->weights().trained_params(), std::back_inserter(refs));
  return refs;
}

std::vector<ShardGroup*> Stages::groups() {
  std::vector<ShardGroup*> groups;
  for (const auto& stage : stages_)
    for (const auto& group : stage->weights().groups()) {
      group->mark_stale();
      groups.push_back(group.get());
    }
  return groups;
}

}  // namespace tessera::parallel
