// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/stage_weights.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "tessera/base/name_pattern.hpp"
#include "tessera/kernels/initial_values.hpp"
#include "tessera/kernels/philox.hpp"

namespace tessera::parallel {
namespace {

using mesh::Axis;

std::set<int> params_of(const model::ModelSpec& model, const model::UnitSpec& unit) {
  std::set<int> params;
  for (int cell = unit.begin; cell < unit.end; ++cell)
    for (const int param : model.cells[static_cast<std::size_t>(cell)].params) params.insert(param);
  return params;
}

/// Units of the whole model that use a parameter: more than one if it is tied.
int users(const model::ModelSpec& model, int param) {
  int count = 0;
  for (const model::UnitSpec& unit : model.units)
    count += static_cast<int>(params_of(model, unit).count(param));
  return count;
}

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
  std::vector<std::string> params;
  for (const model::ParamSpec& param : model_.params) params.push_back(param.fqn);
  for (const std::string& pattern : options_.sharding.freeze)
    require_matches(pattern, params, "training.freeze");
  make_buffers();
}

bool StageWeights::whole_model() const {
  return cells_ == Range{0, static_cast<std::int64_t>(model_.cells.size())};
}

void StageWeights::make_buffers() {
  const auto type = options_.sharding.precision.master == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = at::TensorOptions(type).device(options_.sharding.device);
  buffers_.resize(model_.buffers.size());
  for (std::int64_t i = cells_.begin; i < cells_.end(); ++i)
    for (const int buffer : model_.cells[static_cast<std::size_t>(i)].buffers)
      buffers_[static_cast<std::size_t>(buffer)] =
          at::zeros(model_.buffers[static_cast<std::size_t>(buffer)].shape, options);
}

bool StageWeights::frozen(const model::ParamSpec& spec) const {
  return std::ranges::any_of(options_.sharding.freeze, [&](const std::string& pattern) {
    return matches(pattern, spec.fqn);
  });
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

ShardGroup* StageWeights::make_group(const std::string& name,
                                     const std::vector<const model::ParamSpec*>& specs, bool tied) {
  GroupOptions options{options_.sharding.precision, options_.sharding.device,
                       options_.sharding.offload, !frozen(*specs.front()),
                       tied ? tied_weight_.home : nullptr};
  if (options_.sharding.offload && !options_.sharding.device.is_cpu()) {
    if (!copies_) copies_.emplace(options_.sharding.device);
    options.copies = &*copies_;
  }
  std::vector<PlacedParam> params;
  for (const model::ParamSpec* spec : specs)
    params.push_back(
        {spec, plan::place(*spec, mesh_.layout(), mesh_.rank(), placement_options(tied))});
  const bool experts = model::counts_experts(specs.front()->placement);
  groups_.push_back(
      std::make_unique<ShardGroup>(name, std::move(params), shards_of(mesh_, experts), options));
  return groups_.back().get();
}

ShardGroup* StageWeights::tied_group(const model::ParamSpec* spec) {
  if (ShardGroup* group = group_of(spec)) return group;
  const bool other_stage = !whole_model();
  ShardGroup* group = make_group(spec->fqn, {spec}, other_stage);
  if (other_stage) tied_ = group;
  return group;
}

std::vector<ShardGroup*> StageWeights::make_groups(const model::UnitSpec& unit) {
  // Trained, frozen; experts' trained, frozen.
  std::array<std::vector<const model::ParamSpec*>, 4> kinds;
  std::vector<ShardGroup*> result;
  for (const int param : params_of(model_, unit)) {
    const model::ParamSpec* spec = &model_.params[static_cast<std::size_t>(param)];
    if (users(model_, param) > 1) {
      result.push_back(tied_group(spec));
      continue;
    }
    const int experts = model::counts_experts(spec->placement) ? 2 : 0;
    kinds[static_cast<std::size_t>(experts + (frozen(*spec) ? 1 : 0))].push_back(spec);
  }
  constexpr std::array names{"", " (frozen)", " experts", " experts (frozen)"};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    if (!kinds[kind].empty())
      result.push_back(make_group(unit.name + names[kind], kinds[kind], false));
  return result;
}

Params StageWeights::params() const {
  Params params;
  for (const auto& group : groups_) {
    if (group->options().home) continue;
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
  for (const auto& group : groups_)
    for (const ShardedParam& param : group->params()) draw(param, seed);
}

void StageWeights::end_step() {
  for (const auto& group : groups_) group->end_step();
}

GatherCount StageWeights::gather_count() const {
  GatherCount sum;
  for (const auto& group : groups_) {
    sum.gathers += group->gather_count().gathers;
    sum.bytes += group->gather_count().bytes;
  }
  return sum;
}

}  // namespace tessera::parallel
