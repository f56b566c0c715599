// SPDX-License-Identifier: Apache-2.0
#include "stage_forward.hpp"

#include "unit_forward.hpp"

namespace tessera::parallel {

StageForward::StageForward(Stage& stage, int microbatch, const model::Flow& in,
                           const LossInput* loss)
    : stage_(stage),
      microbatch_(microbatch),
      operations_(stage.operations_of(microbatch)),
      context_(stage.context_with(operations_)),
      records_(at::GradMode::is_enabled()),
      result_{in, {}, {}} {
  context_.loads = &stage.experts_.loads();
  if (loss) loss_ = {loss->labels, loss->scale, stage.experts_.loss_scale()};
}

StageForward::~StageForward() = default;

bool StageForward::advance() {
  const at::AutoGradMode grad(records_);
  for (; next_ < stage_.units_.size(); ++next_) {
    if (advance_unit()) return true;
    if (next_ + 1 == stage_.units_.size()) stage_.close_budget();
  }
  return false;
}

bool StageForward::advance_unit() {
  const UnitState& state = stage_.units_[next_];
  if (unit_) {
    comm::Watchdog::at(state.unit.name(), "forward");
  } else {
    begin_unit();
    if (stage_.recompute_.open() && state.block) {
      end_unit(stage_.recompute_.measured_forward(state, next_, result_.flow, context_));
      return false;
    }
    const bool ends = stage_.last() && next_ + 1 == stage_.units_.size();
    unit_ = std::make_unique<UnitForward>(state.unit, result_.flow, context_,
                                          ends && loss_ ? &*loss_ : nullptr, state.recompute);
  }
  const bool lists = stage_.tape_.offload && state.block && state.recompute != Recompute::unit;
  const kernels::SavedTensors listing(lists ? &saved_ : nullptr);
  if (unit_->advance()) return true;
  TapeEntry entry = std::exchange(unit_, nullptr)->take();
  if (stage_.tape_.offload && state.block)
    entry.offloaded =
        stage_.tape_.offload->send(state.unit.own_tensors(entry, std::exchange(saved_, {})));
  end_unit(std::move(entry));
  return false;
}

void StageForward::begin_unit() {
  stage_.gather_for_forward(next_);
  // before the memory of logits
  if (next_ > 0 && next_ + 1 == stage_.units_.size()) stage_.reducer_.settle();
}

void StageForward::end_unit(TapeEntry entry) {
  if (stage_.look_) stage_.look_();
  result_.flow = entry.out;
  if (entry.loss.defined()) result_.loss = entry.loss.detach();
  result_.token_losses = std::move(entry.token_losses);
  stage_.experts_.add_loss(entry.balance);
  if (entry.recompute == Recompute::unit) entry.out = {};
  stage_.tape_.passes[{microbatch_, next_}] = std::move(entry);
  stage_.reshard(stage_.units_[next_]);
}

}  // namespace tessera::parallel
