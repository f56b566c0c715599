#include "mpi/train/sleeping.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace tessera::test {
namespace {

using model::Flow;
using model::Slot;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void sleep(double seconds, NapLog& log) {
  if (log.first == 0) log.first = now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  log.last = now();
  log.slept += seconds;
}

struct Sleep : torch::autograd::Function<Sleep> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Nap* nap) {
    context->saved_data["nap"] = reinterpret_cast<std::int64_t>(nap);
    sleep(nap->forward, *nap->log);
    return x.view_as(x);
  }
  static tensor_list backward(AutogradContext* context, tensor_list grads) {
    const Nap& nap = *reinterpret_cast<const Nap*>(context->saved_data["nap"].toInt());
    sleep(nap.input, *nap.log);
    static const Tensor weight = torch::zeros({1});  // whose gradient the nap stands for
    if (nap.gradients->puts_off(weight))
      nap.gradients->defer([&nap] { sleep(nap.weight, *nap.log); });
    else
      sleep(nap.weight, *nap.log);
    return {grads[0], Tensor()};
  }
};

Slot floating_slot(const Flow& flow) {
  for (const Slot slot : {Slot::logits, Slot::h, Slot::q, Slot::x})
    if (flow[slot].defined()) return slot;
  return Slot::x;
}

}  // namespace

void add_naps(model::Model& model, std::span<Nap> naps) {
  for (std::size_t i = 0; i < model.cells.size(); ++i) {
    auto& cell = model.cells[i];
    cell.forward = [forward = cell.forward, nap = &naps[i]](Flow& flow, const model::CellContext& context) {
      forward(flow, context);
      const Slot slot = floating_slot(flow);
      flow[slot] = Sleep::apply(flow[slot], nap);
    };
  }
}

model::Model empty_model(int cells) {
  model::Model model;
  model.name = "empty";
  model.dimensions = {1, cells, 1, 1, 1, 1, 2, false};
  model.params.push_back({"start.weight", {2, 1}, model::Placement::replicated, {0, 1}, "start.weight"});
  for (int i = 0; i < cells; ++i) {
    model::Cell cell;
    cell.name = fmt::format("layers.{}", i);
    if (i == 0) cell.params = {0};
    cell.live = i == 0 ? std::vector<model::Live>{{Slot::tokens, model::Spread::tokens, {}}}
                       : std::vector<model::Live>{{Slot::x, model::Spread::tokens, {1}}};
    cell.forward = [i, last = i + 1 == cells](Flow& flow, const model::CellContext& context) {
      if (i == 0) flow[Slot::x] = torch::embedding(context.weights[0].value, flow.take(Slot::tokens));
      if (last) flow[Slot::logits] = flow.take(Slot::x).expand({-1, 2}).contiguous();
    };
    model.cells.push_back(std::move(cell));
    model.units.push_back({fmt::format("layers.{}", i), i, i + 1});
  }
  return model;
}

}  // namespace tessera::test
