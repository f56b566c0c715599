#include "tessera/parallel/executor.hpp"

#include "tessera/base/error.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using model::Flow;
using model::Slot;

Executor::Executor(Stage& stage, comm::Communicator& pp, ActionList list) : stage_(stage), pp_(pp), list_(std::move(list)) {}

PassResult Executor::run(std::span<const Microbatch> microbatches, int first, double scale) {
  PassResult result;
  for (const Action& action : list_) {
    const int m = action.microbatch;
    switch (action.kind) {
      case ActionKind::forward: forward(action, microbatches[static_cast<std::size_t>(m)], first + m, scale, result); break;
      case ActionKind::backward: backward(action, first + m); break;
      case ActionKind::send_forward: send(m, pp_.rank() + 1, outputs_); break;
      case ActionKind::send_backward: send(m, pp_.rank() - 1, input_gradients_); break;
      case ActionKind::recv_forward: receive(m, pp_.rank() - 1, inputs_); break;
      case ActionKind::recv_backward: receive(m, pp_.rank() + 1, output_gradients_); break;
    }
    outgoing_.remove_if([](Outgoing& sent) { return sent.request.test(); });
  }
  for (Outgoing& sent : outgoing_) sent.request.wait();
  outgoing_.clear();
  return result;
}

void Executor::forward(const Action& action, const Microbatch& data, int number, double scale, PassResult& result) {
  Flow in;
  in[stage_.first() ? Slot::tokens : Slot::x] = stage_.first() ? data.tokens : arrived(action.microbatch, inputs_);
  if (!stage_.last()) {
    outputs_[action.microbatch] = stage_.forward(number, in, nullptr, nullptr)[Slot::x].detach().contiguous();
    return;
  }
  torch::Tensor loss, token_losses;
  const LossInput input{data.labels, scale, &token_losses};
  stage_.forward(number, in, &input, &loss);
  result.loss += loss.item<double>();
  result.token_losses.push_back(token_losses);
}

void Executor::backward(const Action& action, int number) {
  Flow gradients;
  if (!stage_.last()) gradients[Slot::x] = arrived(action.microbatch, output_gradients_);
  gradients = stage_.backward(number, std::move(gradients));
  if (!stage_.first()) input_gradients_[action.microbatch] = gradients[Slot::x].contiguous();
}

void Executor::send(int microbatch, int peer, std::map<int, torch::Tensor>& from) {
  Outgoing sent{std::move(from.extract(microbatch).mapped()), {}};
  pp_.group_start();
  pp_.send(buffer_of(sent.value), peer);
  sent.request = pp_.group_end();
  outgoing_.push_back(std::move(sent));
}

void Executor::receive(int microbatch, int peer, std::map<int, Incoming>& into) {
  Incoming incoming{torch::empty(stage_.boundary_shape(),
                                 torch::TensorOptions(stage_.options().precision.compute).device(stage_.options().device)),
                    {}};
  pp_.group_start();
  pp_.recv(buffer_of(incoming.value), peer);
  incoming.request = pp_.group_end();
  into.emplace(microbatch, std::move(incoming));
}

torch::Tensor Executor::arrived(int microbatch, std::map<int, Incoming>& from) {
  Incoming incoming = std::move(from.extract(microbatch).mapped());
  incoming.request.wait();
  return incoming.value;
}

}  // namespace tessera::parallel
