// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/executor.hpp"

#include <optional>
#include <utility>

#include "stage_forward.hpp"
#include "tessera/base/error.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

/// In backward passes of a stage, while this lives.
class OthersCompute {
 public:
  OthersCompute(StageExperts& experts, std::function<void()> others) : experts_(experts) {
    experts_.let_compute(std::move(others));
  }
  ~OthersCompute() { experts_.let_compute({}); }
  OthersCompute(const OthersCompute&) = delete;
  OthersCompute& operator=(const OthersCompute&) = delete;

 private:
  StageExperts& experts_;
};

}  // namespace

using model::Flow;
using model::Slot;
using schedule::Action;
using schedule::ActionKind;
using schedule::ActionList;
using schedule::StageIndex;

PassResult Executor::run(const ActionList& list, std::span<const Microbatch> microbatches,
                         int first, double scale) {
  return run(list, Pass{microbatches, first, scale, false, {}});
}

PassResult Executor::evaluate(const ActionList& list, std::span<const Microbatch> microbatches) {
  return run(list, Pass{microbatches, 0, 0, true, {}});
}

PassResult Executor::run(const ActionList& list, Pass pass) {
  for (auto action = list.begin(); action != list.end(); ++action) {
    current_microbatch_ = pass.number_of(*action);
    if (action->overlaps_next) {
      pair(action[0], action[1], pass);
      ++action;
    } else {
      computes(action->kind) ? compute(*action, pass) : move(*action);
    }
    outgoing_.remove_if([](Transfer& sent) { return sent.request.test(); });
  }
  for (Transfer& sent : outgoing_) sent.request.wait();
  outgoing_.clear();
  return std::move(pass.result);
}

void Executor::abandon_step() {
  for (auto* const transfers : {&inputs_, &output_gradients_}) {
    for (auto& [key, incoming] : *transfers) incoming.request.abandon();
    transfers->clear();
  }
  for (Transfer& sent : outgoing_) sent.request.abandon();
  outgoing_.clear();
  outputs_.clear();
  input_gradients_.clear();
}

void Executor::compute(const Action& action, Pass& pass) {
  const bool is_forward = action.kind == ActionKind::forward;
  std::optional<metrics::PhaseTimer::Scope> phase;
  if (timer_)
    phase.emplace(*timer_, is_forward ? metrics::Phase::forward : metrics::Phase::backward);
  if (is_forward) return forward(action, pass);
  if (action.kind == ActionKind::weight_gradient)
    stages_.at(action.stage).backward_weights(pass.number_of(action));
  else
    backward(action, pass);
}

Flow Executor::begin_forward(const Action& action, const Pass& pass) {
  Stage& stage = stages_.at(action.stage);
  const Microbatch& data = pass.microbatches[action.microbatch.position()];
  stage.begin_forward(pass.number_of(action), data.documents);
  if (!stage.first()) return arrived(action, inputs_);
  Flow in;
  in[Slot::tokens] = data.tokens;
  return in;
}

void Executor::end_forward(const Action& action, StagePass made, Pass& pass) {
  if (!stages_.at(action.stage).last()) {
    hand_over(action, action.stage + 1, std::move(made.flow), outputs_, inputs_);
    return;
  }
  // A schedule may run them in any order; they are given back in that of the batch.
  pass.result.token_losses.resize(pass.microbatches.size());
  pass.result.token_losses[action.microbatch.position()] = std::move(made.token_losses);
}

void Executor::forward(const Action& action, Pass& pass) {
  Stage& stage = stages_.at(action.stage);
  const Flow in = begin_forward(action, pass);
  const std::optional<LossInput> loss = loss_of(action, pass);
  const int number = pass.number_of(action);
  const LossInput* at_end = loss ? &*loss : nullptr;
  end_forward(
      action,
      pass.evaluates ? stage.evaluate(number, in, at_end) : stage.forward(number, in, at_end),
      pass);
}

/// While rows of one travel, the other computes.
void Executor::pair(const Action& forward, const Action& backward, Pass& pass) {
  const Flow in = begin_forward(forward, pass);
  const std::optional<LossInput> loss = loss_of(forward, pass);
  const int number = pass.number_of(forward), other = pass.number_of(backward);
  StageForward computed(stages_.at(forward.stage), number, in, loss ? &*loss : nullptr);
  const auto advance = [&] {
    std::optional<metrics::PhaseTimer::Scope> phase;
    if (timer_) phase.emplace(*timer_, metrics::Phase::forward);
    current_microbatch_ = number;
    const bool more = computed.advance();
    current_microbatch_ = other;
    return more;
  };
  current_microbatch_ = other;
  {
    const OthersCompute others(stages_.at(backward.stage).experts(), [&] {
      const comm::Watchdog::Detour detour;
      advance();
    });
    compute(backward, pass);
  }
  while (advance()) {
  }
  end_forward(forward, computed.take(), pass);
}

std::optional<LossInput> Executor::loss_of(const Action& action, const Pass& pass) {
  if (!stages_.at(action.stage).last()) return std::nullopt;
  return LossInput{pass.microbatches[action.microbatch.position()].labels, pass.scale};
}

void Executor::backward(const Action& action, const Pass& pass) {
  Stage& stage = stages_.at(action.stage);
  const bool whole = action.kind == ActionKind::backward;
  stage.begin_backward(pass.number_of(action));
  Flow gradients;
  if (!stage.last()) gradients = arrived(action, output_gradients_);
  gradients = stage.backward(pass.number_of(action), std::move(gradients),
                             whole ? Backward::whole : Backward::inputs);
  if (!stage.first())
    hand_over(action, action.stage - 1, std::move(gradients), input_gradients_, output_gradients_);
}

/// To the neighbouring stage on this rank, or to the transfer that the list has for it.
void Executor::hand_over(const Action& made, StageIndex to, Flow flow, std::map<Key, Flow>& sent,
                         std::map<Key, Transfer>& local) {
  if (stages_.map().same_rank(made.stage, to))
    local[{to, made.microbatch}].flow = std::move(flow);
  else
    sent[{made.stage, made.microbatch}] = std::move(flow);
}

void Executor::move(const Action& action) {
  const Stage& stage = stages_.at(action.stage);
  switch (action.kind) {
    case ActionKind::send_forward:
      return send(action, {down_, action.stage + 1}, outputs_, stage.outputs());
    case ActionKind::send_backward:
      return send(action, {up_, action.stage - 1}, input_gradients_, stage.inputs());
    case ActionKind::recv_forward:
      return receive(action, {down_, action.stage - 1}, inputs_, stage.inputs());
    default:
      return receive(action, {up_, action.stage + 1}, output_gradients_, stage.outputs());
  }
}

void Executor::send(const Action& action, const Link& link, std::map<Key, Flow>& from,
                    const std::vector<plan::Crossing>& slots) {
  const Flow flow = std::move(from.extract({action.stage, action.microbatch}).mapped());
  Transfer sent;
  link.pp.group_start();
  for (const plan::Crossing& crossing : slots) {
    const at::Tensor value = flow[crossing.slot].detach().contiguous();
    TESSERA_EXPECT(value.sizes() == crossing.shape,
                   "slot {} crosses the cut with a shape that its cell does not declare",
                   model::name_of(crossing.slot));
    link.pp.send(buffer_of(value), stages_.map().rank_of(link.stage).value());
    sent.flow[crossing.slot] = value;
  }
  sent.request = link.pp.group_end();
  outgoing_.push_back(std::move(sent));
}

void Executor::receive(const Action& action, const Link& link, std::map<Key, Transfer>& into,
                       const std::vector<plan::Crossing>& slots) {
  const StageOptions& options = stages_.options();
  Transfer incoming;
  link.pp.group_start();
  for (const plan::Crossing& crossing : slots) {
    incoming.flow[crossing.slot] =
        at::empty(crossing.shape,
                  at::TensorOptions(scalar_type_of(crossing.type)).device(options.sharding.device));
    link.pp.recv(buffer_of(incoming.flow[crossing.slot]),
                 stages_.map().rank_of(link.stage).value());
  }
  incoming.request = link.pp.group_end();
  into[{action.stage, action.microbatch}] = std::move(incoming);
}

Flow Executor::arrived(const Action& action, std::map<Key, Transfer>& from) {
  Transfer incoming = std::move(from.extract({action.stage, action.microbatch}).mapped());
  incoming.request.wait();
  return std::move(incoming.flow);
}

}  // namespace tessera::parallel
