// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/stage.hpp"

#include "stage_forward.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using mesh::Axis;
using model::Flow;

ReducerOptions reducer_options_of(const StageOptions& options, bool pipelined) {
  return {options.sharding.reduces_each_microbatch(pipelined), options.sharding.deterministic};
}

Stage::Stage(const model::Model& model, Range cells, mesh::DeviceMesh& mesh,
             const StageOptions& options, GradientReducer& reducer, const TiedWeight& tied)
    : model_(model),
      cells_(cells),
      mesh_(mesh),
      options_(options),
      weights_(model, cells, mesh, options, tied),
      experts_(model, cells, mesh, options.sharding.device, options.expert_rows),
      reducer_(reducer),
      recompute_(options.recompute, options.sharding.device),
      rounded_(options.linears, mesh) {
  check_patterns();
  angles_ = options_.context.cut.ranks() > 1
                ? model.angles.of(options_.context.cut.ranges(mesh.coord(Axis::cp)))
                : model.angles;
  add_units();
  resolve_policies(0);
  recompute_.resolve(units_);
  if (options_.recompute.offload && !options_.sharding.device.is_cpu())
    tape_.offload.emplace(options_.sharding.device);
}

void Stage::add_units() {
  for (const plan::UnitPart& part : plan::unit_parts(model_, cells_)) {
    std::vector<ShardGroup*> groups = weights_.make_groups(part.spec);
    reducer_.add_unit(groups);
    for (const ShardGroup* group : groups) rounded_.add(group->params());
    Unit unit(model_, part.spec, std::move(groups), tensor_parallel(), weights_.buffers(),
              options_.recompute.products);
    units_.push_back({std::move(unit), part.number, part.block});
  }
}

TensorParallel Stage::tensor_parallel() {
  const bool cut = mesh_.layout().experts_cut_by_tp();
  TensorParallel how{mesh_.along(Axis::tp), options_.tensor.sequence_parallel,
                     options_.tensor.loss_parallel};
  how.chunks = {&how.tp, options_.tensor.token_chunks, options_.tensor.overlap_chunks,
                &weight_gradients_};
  if (experts_.exchange()) how.exchange = experts_.exchange();
  how.experts_cut = cut;
  how.fused_loss = options_.fused_loss;
  how.microbatch = cut ? &mesh_.along(Axis::cp) : &mesh_.along({Axis::cp, Axis::tp});
  return how;
}

std::vector<plan::Crossing> Stage::inputs() const {
  return first() ? std::vector<plan::Crossing>() : crossings(cells_.begin);
}

std::vector<plan::Crossing> Stage::outputs() const {
  return last() ? std::vector<plan::Crossing>() : crossings(cells_.end());
}

std::vector<plan::Crossing> Stage::crossings(std::int64_t cell) const {
  return plan::crossings(
      model_.cells[static_cast<std::size_t>(cell)],
      {mesh_.along(Axis::tp).size(), options_.tensor.sequence_parallel, options_.microbatch.batch,
       options_.microbatch.seq, dtype_of(options_.sharding.precision.compute)});
}

void Stage::begin_step(int microbatches) {
  tape_.passes.clear();
  tape_.owed.clear();
  tape_.documents.clear();
  weight_gradients_.take();
  experts_.begin_step(microbatches);
}

void Stage::begin_forward(int microbatch, Documents documents) {
  if (!documents.empty())
    tape_.documents[microbatch] = std::make_shared<const PackedDocuments>(std::move(documents));
  gather_from(0);
}

void Stage::begin_backward(int microbatch) {
  gather_down_from(units_.size() - 1);
  fetch(microbatch, units_.size() - 1);
}

ContextOperations Stage::operations_of(int microbatch) const {
  const auto documents = tape_.documents.find(microbatch);
  return {operations_,
          {&mesh_.along(Axis::cp), options_.context.cut, options_.context.rotation},
          documents == tape_.documents.end() ? nullptr : documents->second};
}

model::CellContext Stage::context_with(const model::Operations& operations) const {
  model::CellContext context;
  context.batch = options_.microbatch.batch;
  context.operations = &operations;
  context.angles = &angles_;
  return context;
}

/// The weights of the next units travel while this one computes.
void Stage::gather_from(std::size_t unit) {
  const auto ahead = static_cast<std::size_t>(options_.sharding.prefetch_units);
  for (std::size_t k = unit; k < units_.size() && k <= unit + ahead; ++k)
    units_[k].unit.start_unshard();
}

void Stage::gather_down_from(std::size_t unit) {
  const auto ahead = static_cast<std::size_t>(options_.sharding.prefetch_units);
  for (std::size_t k = 0; k <= unit && k <= ahead; ++k) units_[unit - k].unit.start_unshard();
}

void Stage::gather_for_forward(std::size_t unit) {
  comm::Watchdog::at(units_[unit].unit.name(), "forward");
  units_[unit].unit.finish_unshard();
  gather_from(unit);
}

StagePass Stage::forward(int microbatch, const Flow& in, const LossInput* loss) {
  StageForward pass(*this, microbatch, in, loss);
  while (pass.advance()) {
  }
  return pass.take();
}

/// After the forward pass that it measured.
void Stage::close_budget() {
  using enum Axis;
  if (recompute_.open())
    recompute_.close(units_, mesh_.along({dp_replicate, dp_shard, cp, tp}).host());
}

Flow Stage::backward(int microbatch, Flow gradients, Backward what) {
  const ContextOperations operations = operations_of(microbatch);
  const model::CellContext context = context_with(operations);
  for (std::size_t k = units_.size(); k-- > 0;) {
    Unit& unit = units_[k].unit;
    comm::Watchdog::at(unit.name(), "backward");
    TapeEntry entry = std::move(tape_.passes.extract({microbatch, k}).mapped());
    unit.finish_unshard();
    gather_down_from(k);
    fetch_for_backward(entry, microbatch, k);
    if (what == Backward::inputs) weight_gradients_.put_off();
    const ActivationOffload::Pass offloaded = entry.offloaded;
    gradients = unit.backward(std::move(entry), context, gradients);
    if (tape_.offload) tape_.offload->done_with(offloaded);
    if (look_) look_();
    if (what == Backward::inputs)
      tape_.owed[{microbatch, k}] = take_owed(unit);
    else
      reducer_.add(unit.groups(), microbatch);
    reshard(units_[k]);
  }
  return gradients;
}

/// Leaves must not hold gradients of two microbatches: the reducer adds these up in an order of its
/// own.
Stage::Owed Stage::take_owed(const Unit& unit) {
  Owed owed{weight_gradients_.take(), {}};
  for (ShardGroup* group : unit.groups()) owed.gradients.push_back(group->take_leaf_gradients());
  return owed;
}

void Stage::backward_weights(int microbatch) {
  at::NoGradGuard no_grad;
  for (std::size_t k = units_.size(); k-- > 0;) {
    const Unit& unit = units_[k].unit;
    comm::Watchdog::at(unit.name(), "weight gradients");
    const Owed owed = std::move(tape_.owed.extract({microbatch, k}).mapped());
    for (std::size_t g = 0; g < owed.gradients.size(); ++g)
      unit.groups()[g]->put_leaf_gradients(owed.gradients[g]);
    for (const auto& compute : owed.work) compute();
    reducer_.add(unit.groups(), microbatch);
  }
}

Flow Stage::infer(const Flow& in, const model::CellContext& context) {
  return pass(in, context, nullptr).flow;
}

StagePass Stage::evaluate(int microbatch, const Flow& in, const LossInput* loss) {
  const ContextOperations operations = operations_of(microbatch);
  return pass(in, context_with(operations), loss);
}

StagePass Stage::pass(const Flow& in, const model::CellContext& context, const LossInput* loss) {
  at::NoGradGuard no_grad;
  StagePass result{in, {}, {}};
  for (std::size_t k = 0; k < units_.size(); ++k) {
    gather_for_forward(k);
    const LossInput* here = last() && k + 1 == units_.size() ? loss : nullptr;
    TapeEntry entry = units_[k].unit.forward(result.flow, context, here);
    result.flow = std::move(entry.out);
    result.token_losses = std::move(entry.token_losses);
    reshard(units_[k]);
  }
  return result;
}

}  // namespace tessera::parallel
