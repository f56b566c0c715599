#include "tessera/parallel/stage.hpp"

#include <set>

#include "tessera/base/error.hpp"
#include "tessera/kernels/initial_values.hpp"
#include "tessera/kernels/philox.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using mesh::Axis;
using model::Flow;
using model::Slot;

std::set<int> params_of(const model::Model& model, const model::UnitSpec& unit) {
  std::set<int> params;
  for (int cell = unit.begin; cell < unit.end; ++cell)
    for (const int param : model.cells[static_cast<std::size_t>(cell)].params) params.insert(param);
  return params;
}

/// Units of the whole model that use a parameter: more than one if it is tied.
int users(const model::Model& model, int param) {
  int count = 0;
  for (const model::UnitSpec& unit : model.units) count += static_cast<int>(params_of(model, unit).count(param));
  return count;
}

ShardAxes axes_of(mesh::DeviceMesh& mesh) {
  return {&mesh.along(Axis::tp), &mesh.along({Axis::dp_shard, Axis::cp}), &mesh.along(Axis::dp_replicate)};
}

void draw(const ShardedParam& param, std::uint64_t seed) {
  const model::InitialValues& init = param.spec->init;
  if (init.std == 0) {
    param.master.fill_(init.mean);
    return;
  }
  const TensorSlice box = param.slice("");
  const torch::Tensor host = torch::empty(param.master.sizes(), param.master.options().device(torch::kCPU));
  kernels::fill_normal(host, {seed, kernels::stream_of(param.spec->fqn)}, box.global_shape, box.offset,
                       {init.mean, init.std, init.low, init.high});
  param.master.copy_(host);
}

}  // namespace

Stage::Stage(const model::Model& model, Range units, mesh::DeviceMesh& mesh, const StageOptions& options)
    : mesh_(mesh), options_(options), range_(units), model_units_(static_cast<std::int64_t>(model.units.size())),
      dim_(model.dimensions.dim), first_(units.begin == 0), last_(units.end() == model_units_) {
  const ShardAxes axes = axes_of(mesh);
  for (std::int64_t i = units.begin; i < units.end(); ++i) {
    const model::UnitSpec& spec = model.units[static_cast<std::size_t>(i)];
    std::vector<ShardGroup*> groups = make_groups(model, spec, axes);
    for (ShardGroup* group : groups) ++uses_[group];
    units_.emplace_back(model, spec, std::move(groups), *axes.tp);
  }
}

ShardGroup* Stage::group_of(const model::Model& model, int param) const {
  for (const auto& group : groups_)
    if (group->find(&model.params[static_cast<std::size_t>(param)]) >= 0) return group.get();
  return nullptr;
}

/// The unit's own parameters form one group; a tied one has a group of its own, shared by its users.
std::vector<ShardGroup*> Stage::make_groups(const model::Model& model, const model::UnitSpec& unit, const ShardAxes& axes) {
  std::vector<const model::ParamSpec*> own;
  std::vector<ShardGroup*> result;
  for (const int param : params_of(model, unit)) {
    const model::ParamSpec* spec = &model.params[static_cast<std::size_t>(param)];
    if (users(model, param) == 1) {
      own.push_back(spec);
      continue;
    }
    ShardGroup* group = group_of(model, param);
    if (!group) {
      groups_.push_back(std::make_unique<ShardGroup>(spec->fqn, std::vector{spec}, axes, options_.precision, options_.device));
      group = groups_.back().get();
      if (!(first_ && last_)) tied_ = group;
    }
    result.push_back(group);
  }
  if (!own.empty()) {
    groups_.push_back(std::make_unique<ShardGroup>(unit.name, own, axes, options_.precision, options_.device));
    result.push_back(groups_.back().get());
  }
  return result;
}

std::vector<std::int64_t> Stage::boundary_shape() const {
  return {options_.batch * options_.seq / mesh_.along(Axis::tp).size(), dim_};
}

void Stage::initialize(std::uint64_t seed) {
  torch::NoGradGuard no_grad;
  for (const auto& group : groups_)
    for (const ShardedParam& param : group->params()) draw(param, seed);
}

bool Stage::reshards(std::size_t unit) const {
  switch (options_.reshard) {
    case ReshardPolicy::always: return true;
    case ReshardPolicy::never: return false;
    case ReshardPolicy::standard: break;
  }
  return first_ && last_ && static_cast<std::int64_t>(unit) + 1 < model_units_;
}

/// Blocks only: the first and the last unit of the model are the embedding and [norm, output].
bool Stage::recomputes(std::size_t unit) const {
  const std::int64_t index = range_.begin + static_cast<std::int64_t>(unit);
  const bool block = index > 0 && index + 1 < model_units_;
  return block && options_.recompute_every > 0 && (index - 1) % options_.recompute_every == 0;
}

void Stage::begin_step(int microbatches) {
  for (auto& [group, uses] : uses_) pending_[group] = uses * microbatches;
}

Flow Stage::forward(int microbatch, const Flow& in, const LossInput* loss, torch::Tensor* loss_value) {
  const model::CellContext context{{}, options_.batch, 0, nullptr};
  Flow flow = in;
  for (std::size_t k = 0; k < units_.size(); ++k) {
    units_[k].finish_unshard();
    if (k + 1 < units_.size()) units_[k + 1].start_unshard();
    const bool recompute = recomputes(k);
    torch::AutoGradMode grad(!recompute);
    TapeEntry entry = units_[k].forward(flow, context, last_ && k + 1 == units_.size() ? loss : nullptr);
    flow = entry.out;
    if (entry.loss.defined()) *loss_value = entry.loss.detach();
    if (recompute) entry.out = {};
    tape_[{microbatch, k}] = std::move(entry);
    if (reshards(k)) units_[k].reshard();
  }
  return flow;
}

Flow Stage::backward(int microbatch, Flow gradients) {
  const model::CellContext context{{}, options_.batch, 0, nullptr};
  for (std::size_t k = units_.size(); k-- > 0;) {
    TapeEntry entry = std::move(tape_.extract({microbatch, k}).mapped());
    units_[k].finish_unshard();
    if (k > 0) units_[k - 1].start_unshard();
    if (recomputes(k)) entry = units_[k].forward(entry.in, context, nullptr);
    gradients = Unit::backward(entry, gradients);
    entry = {};
    for (ShardGroup* group : units_[k].groups()) accumulate(*group, microbatch);
    if (reshards(k)) units_[k].reshard();
  }
  return gradients;
}

void Stage::accumulate(ShardGroup& group, int microbatch) {
  group.accumulate(microbatch, options_.deterministic);
  if (--pending_[&group] == 0) group.start_reduction();
}

void Stage::finish_gradients() {
  for (const auto& group : groups_) group->start_reduction();
  for (const auto& group : groups_) group->finish_reduction();
  sum_replicated();
  sum_tied();
}

/// Norm weights: each tensor-parallel rank saw its own tokens only. One exchange for all of them.
void Stage::sum_replicated() {
  comm::Communicator& tp = mesh_.along(Axis::tp);
  if (tp.size() == 1) return;
  torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> pieces;
  for (const auto& group : groups_)
    for (const ShardedParam& param : group->params())
      if (param.replicated_over_tp()) pieces.push_back(param.gradient.view({-1}));
  if (pieces.empty()) return;
  const torch::Tensor all = torch::cat(pieces);
  tp.all_reduce(buffer_of(all)).wait();
  std::int64_t begin = 0;
  for (torch::Tensor& piece : pieces) {
    piece.copy_(all.narrow(0, begin, piece.numel()));
    begin += piece.numel();
  }
}

void Stage::sum_tied() {
  comm::Communicator* ends = mesh_.embedding_group();
  if (tied_ && ends && ends->size() > 1) ends->all_reduce(buffer_of(tied_->flat_gradient())).wait();
}

void Stage::end_step() {
  for (const auto& group : groups_) group->end_step();
}

Flow Stage::infer(const Flow& in, model::CellContext context) {
  torch::NoGradGuard no_grad;
  Flow flow = in;
  for (std::size_t k = 0; k < units_.size(); ++k) {
    units_[k].finish_unshard();
    if (k + 1 < units_.size()) units_[k + 1].start_unshard();
    flow = units_[k].forward(flow, context, nullptr).out;
    if (reshards(k)) units_[k].reshard();
  }
  return flow;
}

std::vector<Stage::ParamRef> Stage::params() {
  const comm::Communicator& tp = mesh_.along(Axis::tp);
  const comm::Communicator& replicate = mesh_.along(Axis::dp_replicate);
  std::vector<ParamRef> refs;
  for (const auto& group : groups_) {
    for (ShardedParam& param : group->params()) {
      ParamRef ref{&param};
      const auto copies = [&ref](int rank, int size) {
        ref.replica = ref.replica * size + rank;
        ref.replicas *= size;
      };
      if (param.replicated_over_tp()) copies(tp.rank(), tp.size());
      copies(replicate.rank(), replicate.size());
      if (group.get() == tied_) copies(first_ ? 0 : 1, 2);
      ref.counted = ref.replica == 0;
      refs.push_back(ref);
    }
  }
  return refs;
}

}  // namespace tessera::parallel
