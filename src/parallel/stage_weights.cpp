// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/stage_weights.hpp"

#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/initial_values.hpp"
#include "tessera/kernels/philox.hpp"
#include "tessera/plan/model_fit.hpp"

namespace tessera::parallel {
namespace {

using mesh::Axis;

/// Of the ranks that shard a parameter; those of experts are sharded over others.
comm::Communicator& shards_of(mesh::DeviceMesh& mesh, bool experts) {
  return experts ? mesh.expert_shards() : mesh.along({Axis::dp_shard, Axis::cp});
}

void draw(const ShardedParam& param, std::uint64_t seed) {
  const model::InitialValues& init = param.spec->init;
  if (init.std == 0) {
    param.master.fill_(init.mean);
    return;
  }
  const TensorSlice slice = param.slice("");
  const at::Tensor host = at::empty(param.master.sizes(), param.master.options().device(at::kCPU));
  kernels::fill_normal(host, {seed, kernels::stream_of(param.spec->fqn)}, slice.global_shape,
                       slice.box.offset, {init.mean, init.std, init.low, init.high});
  param.master.copy_(host);
}

}  // namespace

StageWeights::StageWeights(const model::ModelSpec& model, Range cells, mesh::DeviceMesh& mesh,
                           const StageOptions& options, const TiedWeight& tied)
    : model_(model), cells_(cells), mesh_(mesh), options_(options), tied_weight_(tied) {
  for (const std::string& pattern : options_.sharding.freeze)
    plan::require_freezes(model_, pattern);
  make_buffers();
}

bool StageWeights::whole_model() const {
  return cells_ == Range{0, static_cast<std::int64_t>(model_.cells.size())};
}

void StageWeights::make_buffers() {
  const auto type = kernels::accumulation_type(options_.sharding.precision.master);
  const auto options = at::TensorOptions(type).device(options_.sharding.device);
  buffers_.resize(model_.buffers.size());
  for (std::int64_t i = cells_.begin; i < cells_.end(); ++i)
    for (const int buffer : model_.cells[static_cast<std::size_t>(i)].buffers)
      buffers_[static_cast<std::size_t>(buffer)] =
          at::zeros(model_.buffers[static_cast<std::size_t>(buffer)].shape, options);
}

ShardGroup* StageWeights::group_of(const model::ParamSpec* param) const {
  for (const auto& group : groups_)
    if (find(group->params(), param) >= 0) return group.get();
  return nullptr;
}

plan::PlacementOptions StageWeights::placement_options(bool tied) const {
  plan::PlacementOptions how{options_.tensor.sequence_parallel};
  if (tied && tied_weight_.holders > 1) {
    how.stage_copy = cells_.begin == 0 ? 0 : 1;
    how.stage_copies = tied_weight_.holders;
  }
  return how;
}

ShardGroup* StageWeights::make_group(const plan::WeightGroup& weights) {
  const bool other_stage = weights.tied && !whole_model();
  GroupOptions options{
      options_.sharding.precision,        options_.sharding.device,
      options_.sharding.offload,          !weights.frozen,
      options_.sharding.register_buffers, other_stage ? tied_weight_.home : nullptr};
  if (options_.sharding.offload && !options_.sharding.device.is_cpu()) {
    if (!copies_) copies_.emplace(options_.sharding.device);
    options.copies = &*copies_;
  }
  std::vector<PlacedParam> params;
  for (const int param : weights.params) {
    const model::ParamSpec& spec = model_.params[static_cast<std::size_t>(param)];
    const bool in_bytes = options_.linears.gathers_bytes_of(spec);
    params.push_back(
        {&spec, plan::place(spec, mesh_.layout(), mesh_.rank(), placement_options(other_stage)),
         in_bytes});
    if (in_bytes) options.scales = &scales();
  }
  groups_.push_back(std::make_unique<ShardGroup>(weights.name, std::move(params),
                                                 shards_of(mesh_, weights.experts), options));
  if (other_stage) tied_ = groups_.back().get();
  return groups_.back().get();
}

/// Of all the stage's weights that are gathered in bytes.
WeightScales& StageWeights::scales() {
  if (scales_) return *scales_;
  std::int64_t weights = 0;
  for (const int param : plan::params_of(model_, cells_.begin, cells_.end()))
    weights += options_.linears.gathers_bytes_of(model_.params[static_cast<std::size_t>(param)]);
  return scales_.emplace(weights, shards_of(mesh_, false), mesh_.along(Axis::tp),
                         options_.sharding.device);
}

std::vector<ShardGroup*> StageWeights::make_groups(const model::UnitSpec& unit) {
  std::vector<ShardGroup*> result;
  for (const plan::WeightGroup& weights :
       plan::weight_groups(model_, unit, options_.sharding.freeze)) {
    ShardGroup* made =
        weights.tied ? group_of(&model_.params[static_cast<std::size_t>(weights.params.front())])
                     : nullptr;
    result.push_back(made ? made : make_group(weights));
  }
  return result;
}

Params StageWeights::params() const {
  Params params;
  for (const auto& group : groups_) {
    if (group->options().home) continue;
    group->mark_stale();
    for (ShardedParam& param : group->params()) params.push_back(&param);
  }
  return params;
}

Params StageWeights::trained_params() const {
  Params trained = params();
  std::erase_if(trained, [](const ShardedParam* param) { return !param->gradient.defined(); });
  return trained;
}

void StageWeights::initialize(std::uint64_t seed) {
  at::NoGradGuard no_grad;
  for (const auto& group : groups_) {
    group->mark_stale();
    for (const ShardedParam& param : group->params()) draw(param, seed);
  }
}

void StageWeights::end_step(StepEnd how) {
  for (const auto& group : groups_) group->end_step(how);
}

GatherCount StageWeights::gather_count() const {
  GatherCount sum;
  for (const auto& group : groups_) {
    sum += group->gather_count();
  }
  return sum;
}

}  // namespace tessera::parallel
