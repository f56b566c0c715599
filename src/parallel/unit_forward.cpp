// SPDX-License-Identifier: Apache-2.0
#include "unit_forward.hpp"

namespace tessera::parallel {

using model::Flow;
using model::kSlotList;
using model::Slot;

namespace {

/// The same values as leaves of a new graph.
Flow detached(const Flow& flow) {
  Flow result;
  for (const Slot slot : kSlotList) {
    const at::Tensor& value = flow[slot];
    if (value.defined())
      result[slot] = value.is_floating_point() ? value.detach().set_requires_grad(true) : value;
  }
  return result;
}

}  // namespace

UnitForward::UnitForward(const Unit& unit, const Flow& in, const model::CellContext& context,
                         const LossInput* loss, Recompute recompute)
    : unit_(unit),
      loss_(loss),
      loss_tokens_(loss ? unit.loss_chunk(*loss) : 0),
      cells_(unit.steps_.size() - (loss_tokens_ > 0 ? 1 : 0)),
      operations_(*context.operations),
      context_(context) {
  entry_.in = detached(in);
  entry_.recompute = recompute;
  if (recompute == Recompute::operations) operations_.remakes = &entry_.remakes;
  context_.operations = &operations_;
  context_.arrival = &arrival_;
  flow_ = entry_.in;
}

bool UnitForward::advance() {
  const at::AutoGradMode grad(entry_.recompute != Recompute::unit && at::GradMode::is_enabled());
  numbers_.resume();
  const bool travels = advance_cells();
  if (!travels) {
    if (loss_) add_loss();
    entry_.out = std::move(flow_);
    entry_.remakes.drop(entry_.in, entry_.out);
  }
  numbers_.pause();
  return travels;
}

bool UnitForward::advance_cells() {
  for (; next_ < cells_; ++next_) {
    const Unit::Step& step = unit_.steps_[next_];
    if (!arrival_) {
      // Router and dispatch take it; a shared expert needs it too.
      if (next_ + 1 < cells_ && unit_.steps_[next_ + 1].beside > 0) normed_ = flow_[Slot::m];
      unit_.begin(step, flow_, context_, operations_);
      if (arrival_ && context_.exchange->ranks() > 1) {
        compute_beside(step.beside);
        return true;
      }
    }
    end(next_);
    next_ += step.beside;
  }
  return false;
}

void UnitForward::end(std::size_t cell) {
  unit_.end(unit_.steps_[cell], cell + 1 < cells_ ? &unit_.steps_[cell + 1] : nullptr, flow_,
            context_, operations_);
}

void UnitForward::compute_beside(std::size_t cells) {
  if (cells == 0) return;
  flow_[Slot::m] = std::exchange(normed_, at::Tensor());
  for (std::size_t i = next_ + 1; i <= next_ + cells; ++i) {
    unit_.begin(unit_.steps_[i], flow_, context_, operations_);
    end(i);
  }
  flow_.take(Slot::m);
}

void UnitForward::add_loss() {
  TokenLoss made = loss_tokens_ > 0
                       ? unit_.fused_loss(unit_.steps_.back(), flow_, *loss_, loss_tokens_)
                       : unit_.loss_of(flow_.take(Slot::logits), *loss_);
  entry_.loss = std::move(made.loss);
  entry_.token_losses = std::move(made.token_losses);
  entry_.one = std::move(made.one);
  if (flow_[Slot::balance].defined()) unit_.add_balance(entry_, flow_.take(Slot::balance), *loss_);
}

}  // namespace tessera::parallel
