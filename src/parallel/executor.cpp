#include "tessera/parallel/executor.hpp"

#include "tessera/base/error.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using model::Flow;
using model::Slot;

Executor::Executor(Stage& stage, comm::Communicator& pp, ActionList list)
    : stage_(stage), pp_(pp), list_(std::move(list)) {}

PassResult Executor::run(std::span<const Microbatch> microbatches, int first, double scale) {
  PassResult result;
  for (const Action& action : list_) {
    const int m = action.microbatch;
    switch (action.kind) {
      case ActionKind::forward:
        forward(action, microbatches[static_cast<std::size_t>(m)], first + m, scale, result);
        break;
      case ActionKind::backward:
        backward(action, first + m);
        break;
      case ActionKind::send_forward:
        send(m, pp_.rank() + 1, outputs_, stage_.outputs());
        break;
      case ActionKind::send_backward:
        send(m, pp_.rank() - 1, input_gradients_, stage_.inputs());
        break;
      case ActionKind::recv_forward:
        receive(m, pp_.rank() - 1, inputs_, stage_.inputs());
        break;
      case ActionKind::recv_backward:
        receive(m, pp_.rank() + 1, output_gradients_, stage_.outputs());
        break;
      case ActionKind::input_gradient:
      case ActionKind::weight_gradient:
        contract_violated("one backward", __FILE__, __LINE__, "the stage computes I and W together");
    }
    outgoing_.remove_if([](Transfer& sent) { return sent.request.test(); });
  }
  for (Transfer& sent : outgoing_) sent.request.wait();
  outgoing_.clear();
  return result;
}

void Executor::forward(const Action& action, const Microbatch& data, int number, double scale, PassResult& result) {
  Flow in;
  stage_.set_documents(number, data.documents);
  if (stage_.first())
    in[Slot::tokens] = data.tokens;
  else
    in = arrived(action.microbatch, inputs_);
  if (!stage_.last()) {
    outputs_[action.microbatch] = stage_.forward(number, in, nullptr, nullptr);
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
  if (!stage_.last()) gradients = arrived(action.microbatch, output_gradients_);
  gradients = stage_.backward(number, std::move(gradients));
  if (!stage_.first()) input_gradients_[action.microbatch] = std::move(gradients);
}

void Executor::send(int microbatch, int peer, std::map<int, Flow>& from, const std::vector<Crossing>& slots) {
  const Flow flow = std::move(from.extract(microbatch).mapped());
  Transfer sent;
  pp_.group_start();
  for (const Crossing& crossing : slots) {
    const torch::Tensor value = flow[crossing.slot].detach().contiguous();
    TESSERA_EXPECT(value.sizes() == crossing.shape, "slot {} crosses the cut with another shape than its cell declares",
                   model::name_of(crossing.slot));
    pp_.send(buffer_of(value), peer);
    sent.flow[crossing.slot] = value;
  }
  sent.request = pp_.group_end();
  outgoing_.push_back(std::move(sent));
}

void Executor::receive(int microbatch, int peer, std::map<int, Transfer>& into, const std::vector<Crossing>& slots) {
  Transfer incoming;
  pp_.group_start();
  for (const Crossing& crossing : slots) {
    incoming.flow[crossing.slot] =
        torch::empty(crossing.shape, torch::TensorOptions(crossing.type).device(stage_.options().device));
    pp_.recv(buffer_of(incoming.flow[crossing.slot]), peer);
  }
  incoming.request = pp_.group_end();
  into.emplace(microbatch, std::move(incoming));
}

Flow Executor::arrived(int microbatch, std::map<int, Transfer>& from) {
  Transfer incoming = std::move(from.extract(microbatch).mapped());
  incoming.request.wait();
  return std::move(incoming.flow);
}

}  // namespace tessera::parallel
