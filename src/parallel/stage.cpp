#include "tessera/parallel/stage.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "tessera/kernels/initial_values.hpp"
#include "tessera/kernels/philox.hpp"

namespace tessera::parallel {
namespace {

using mesh::Axis;
using model::Flow;

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
  const TensorSlice box = param.slice("");
  const at::Tensor host = at::empty(param.master.sizes(), param.master.options().device(at::kCPU));
  kernels::fill_normal(host, {seed, kernels::stream_of(param.spec->fqn)}, box.global_shape, box.offset,
                       {init.mean, init.std, init.low, init.high});
  param.master.copy_(host);
}

}  // namespace

ReducerOptions reducer_options_of(const StageOptions& options, bool pipelined) {
  using enum Accumulation;
  const bool each =
      options.accumulation == sharded || (options.accumulation == standard && !pipelined && !options.deterministic);
  return {each, options.deterministic};
}

Stage::Stage(const model::Model& model, Range cells, mesh::DeviceMesh& mesh, const StageOptions& options,
             GradientReducer& reducer, const TiedWeight& tied)
    : model_(model),
      cells_(cells),
      mesh_(mesh),
      options_(options),
      model_units_(static_cast<std::int64_t>(model.units.size())),
      first_(cells.begin == 0),
      last_(cells.end() == static_cast<std::int64_t>(model.cells.size())),
      tied_weight_(tied),
      reducer_(reducer) {
  check_patterns();
  if (options_.cut.ranks() > 1) positions_ = options_.cut.ranges(mesh.coord(Axis::cp));
  make_buffers();
  if (mesh.layout().expert_degree() > 1) exchange_.emplace(mesh.experts());
  for (std::int64_t number = 0; number < model_units_; ++number) {
    model::UnitSpec part = model.units[static_cast<std::size_t>(number)];
    part.begin = std::max(part.begin, static_cast<int>(cells.begin));
    part.end = std::min(part.end, static_cast<int>(cells.end()));
    if (part.begin < part.end) make_unit(part, number);
  }
  set_batch(options.batch);
  resolve_policies(0);
  resolve_recompute();
}

void Stage::make_unit(const model::UnitSpec& spec, std::int64_t number) {
  std::vector<ShardGroup*> groups = make_groups(spec);
  reducer_.add_unit(groups);
  units_.emplace_back(model_, spec, std::move(groups), tensor_parallel(), buffers_, options_.recompute.products);
  numbers_.push_back(number);
}

void Stage::set_batch(std::int64_t batch) {
  options_.batch = batch;
  if (!first_) inputs_ = crossings(cells_.begin);
  if (!last_) outputs_ = crossings(cells_.end());
}

std::vector<Crossing> Stage::crossings(std::int64_t cell) const {
  const std::int64_t tp = mesh_.along(Axis::tp).size(), tokens = options_.batch * options_.seq;
  std::vector<Crossing> result;
  for (const model::Live& live : model_.cells[static_cast<std::size_t>(cell)].live) {
    std::vector<std::int64_t> shape{tokens};
    if (live.spread == model::Spread::tokens && options_.sequence_parallel) shape[0] /= tp;
    if (live.spread == model::Spread::heads) shape = {options_.batch, options_.seq};
    if (live.spread == model::Spread::apart) shape.clear();
    const std::size_t cut = shape.size();
    shape.insert(shape.end(), live.features.begin(), live.features.end());
    if (live.spread == model::Spread::features || live.spread == model::Spread::heads)
      shape[cut] = std::max<std::int64_t>(1, shape[cut] / tp);  // few key-value heads: one
    const bool wide = live.slot == model::Slot::balance && options_.precision.compute != at::kDouble;
    result.push_back({live.slot, std::move(shape), wide ? at::kFloat : options_.precision.compute});
  }
  return result;
}

ShardGroup* Stage::group_of(const model::ParamSpec* param) const {
  for (const auto& group : groups_)
    if (group->find(param) >= 0) return group.get();
  return nullptr;
}

ShardGroup* Stage::make_group(const std::string& name, const std::vector<const model::ParamSpec*>& specs, bool tied) {
  GroupOptions options{options_.precision, options_.device, options_.offload, !frozen(*specs.front()),
                       tied ? tied_weight_.home : nullptr};
  if (options_.offload && !options_.device.is_cpu()) {
    if (!copies_) copies_.emplace(options_.device);
    options.copies = &*copies_;
  }
  PlacementOptions how{options_.sequence_parallel};
  if (tied) how = {options_.sequence_parallel, first_ ? 0 : 1, tied_weight_.holders};
  if (how.stage_copies == 1) how.stage_copy = 0;
  std::vector<PlacedParam> params;
  for (const model::ParamSpec* spec : specs) params.push_back({spec, place(*spec, mesh_.layout(), mesh_.rank(), how)});
  const bool experts = model::counts_experts(specs.front()->placement);
  groups_.push_back(std::make_unique<ShardGroup>(name, std::move(params), shards_of(mesh_, experts), options));
  return groups_.back().get();
}

/// The unit's own parameters form one group, its frozen ones another; those of experts lie on other
/// ranks, in groups of their own; a tied one has a group of its own, shared by its users.
std::vector<ShardGroup*> Stage::make_groups(const model::UnitSpec& unit) {
  // Trained, frozen; experts' trained, frozen.
  std::array<std::vector<const model::ParamSpec*>, 4> kinds;
  std::vector<ShardGroup*> result;
  for (const int param : params_of(model_, unit)) {
    const model::ParamSpec* spec = &model_.params[static_cast<std::size_t>(param)];
    if (users(model_, param) == 1) {
      const int experts = model::counts_experts(spec->placement) ? 2 : 0;
      kinds[static_cast<std::size_t>(experts + (frozen(*spec) ? 1 : 0))].push_back(spec);
      continue;
    }
    ShardGroup* group = group_of(spec);
    if (!group) {
      group = make_group(spec->fqn, {spec}, !(first_ && last_));
      if (!(first_ && last_)) tied_ = group;
    }
    result.push_back(group);
  }
  constexpr std::array names{"", " (frozen)", " experts", " experts (frozen)"};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    if (!kinds[kind].empty()) result.push_back(make_group(unit.name + names[kind], kinds[kind], false));
  return result;
}

void Stage::initialize(std::uint64_t seed) {
  at::NoGradGuard no_grad;
  for (const auto& group : groups_)
    for (const ShardedParam& param : group->params()) draw(param, seed);
}

void Stage::begin_step(int microbatches) {
  documents_.clear();
  balance_loss_ = 0;
  balance_scale_ = 1.0 / static_cast<double>(microbatches * mesh_.layout().dp_degree());
}

void Stage::set_documents(int microbatch, Documents documents) {
  if (!documents.empty()) documents_[microbatch] = std::make_shared<const Documents>(std::move(documents));
}

ContextOperations Stage::operations_of(int microbatch) const {
  const auto documents = documents_.find(microbatch);
  return {operations_,
          {&mesh_.along(Axis::cp), options_.cut, options_.rotation},
          documents == documents_.end() ? nullptr : documents->second};
}

model::CellContext Stage::context_with(const model::Operations& operations) const {
  model::CellContext context;
  context.batch = options_.batch;
  context.operations = &operations;
  context.positions = positions_;
  return context;
}

StagePass Stage::forward(int microbatch, const Flow& in, const LossInput* loss) {
  const ContextOperations operations = operations_of(microbatch);
  model::CellContext context = context_with(operations);
  context.loads = &loads_;
  std::optional<LossInput> whole_loss;
  if (loss) {
    whole_loss = *loss;
    whole_loss->balance_scale = balance_scale_;
  }
  StagePass result{in, {}, {}};
  for (std::size_t k = 0; k < units_.size(); ++k) {
    comm::Watchdog::at(units_[k].name(), "forward");
    units_[k].finish_unshard();
    if (k + 1 < units_.size()) units_[k + 1].start_unshard();
    const bool counts = !activations_.empty() && is_block(k);
    const LossInput* here = last_ && k + 1 == units_.size() && whole_loss ? &*whole_loss : nullptr;
    TapeEntry entry = counts ? measured_forward(k, result.flow, context)
                             : units_[k].forward(result.flow, context, here, recompute_[k]);
    if (look_) look_();
    result.flow = entry.out;
    if (entry.loss.defined()) result.loss = entry.loss.detach();
    result.token_losses = std::move(entry.token_losses);
    balance_loss_ += entry.balance;
    if (entry.recompute == Recompute::unit) entry.out = {};
    tape_[{microbatch, k}] = std::move(entry);
    reshard(k);
  }
  if (!activations_.empty()) choose_recompute();
  return result;
}

Flow Stage::backward(int microbatch, Flow gradients, Backward what) {
  const ContextOperations operations = operations_of(microbatch);
  const model::CellContext context = context_with(operations);
  for (std::size_t k = units_.size(); k-- > 0;) {
    comm::Watchdog::at(units_[k].name(), "backward");
    TapeEntry entry = std::move(tape_.extract({microbatch, k}).mapped());
    units_[k].finish_unshard();
    if (k > 0) units_[k - 1].start_unshard();
    if (what == Backward::inputs) weight_gradients_.put_off();
    gradients = units_[k].backward(std::move(entry), context, gradients);
    if (look_) look_();
    if (what == Backward::inputs)
      owed_[{microbatch, k}] = take_owed(k);
    else
      reducer_.add(units_[k].groups(), microbatch);
    reshard(k);
  }
  return gradients;
}

/// Leaves must not hold gradients of two microbatches: the group adds these up in an order of its own.
Stage::Owed Stage::take_owed(std::size_t unit) {
  Owed owed{weight_gradients_.take(), {}};
  for (ShardGroup* group : units_[unit].groups()) owed.gradients.push_back(group->take_leaf_gradients());
  return owed;
}

void Stage::backward_weights(int microbatch) {
  at::NoGradGuard no_grad;
  for (std::size_t k = units_.size(); k-- > 0;) {
    comm::Watchdog::at(units_[k].name(), "weight gradients");
    const Owed owed = std::move(owed_.extract({microbatch, k}).mapped());
    for (std::size_t g = 0; g < owed.gradients.size(); ++g)
      units_[k].groups()[g]->put_leaf_gradients(owed.gradients[g]);
    for (const auto& compute : owed.work) compute();
    reducer_.add(units_[k].groups(), microbatch);
  }
}

void Stage::end_step() {
  for (const auto& group : groups_) group->end_step();
}

Flow Stage::infer(const Flow& in, const model::CellContext& context) { return pass(in, context, nullptr).flow; }

StagePass Stage::evaluate(int microbatch, const Flow& in, const LossInput* loss) {
  const ContextOperations operations = operations_of(microbatch);
  return pass(in, context_with(operations), loss);
}

StagePass Stage::pass(const Flow& in, const model::CellContext& context, const LossInput* loss) {
  at::NoGradGuard no_grad;
  StagePass result{in, {}, {}};
  for (std::size_t k = 0; k < units_.size(); ++k) {
    comm::Watchdog::at(units_[k].name(), "forward");
    units_[k].finish_unshard();
    if (k + 1 < units_.size()) units_[k + 1].start_unshard();
    const LossInput* here = last_ && k + 1 == units_.size() ? loss : nullptr;
    TapeEntry entry = units_[k].forward(result.flow, context, here);
    result.flow = std::move(entry.out);
    result.token_losses = std::move(entry.token_losses);
    reshard(k);
  }
  return result;
}

Params Stage::params() {
  Params params;
  for (const auto& group : groups_) {
    if (group->options().home) continue;
    for (ShardedParam& param : group->params()) params.push_back(&param);
  }
  return params;
}

Params Stage::trained_params() {
  Params trained = params();
  std::erase_if(trained, [](const ShardedParam* param) { return !param->gradient.defined(); });
  return trained;
}

}  // namespace tessera::parallel
