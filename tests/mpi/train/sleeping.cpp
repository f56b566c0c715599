// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/sleeping.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "tessera/kernels/operation.hpp"

namespace tessera::test {
namespace {

using at::Tensor;
using model::Flow;
using model::Slot;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void sleep(double seconds, NapLog& log) {
  if (log.first == 0) log.first = now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  log.last = now();
  log.slept += seconds;
}

class Sleep final : public kernels::Operation {
 public:
  explicit Sleep(const Nap& nap) : nap_(nap) {}
  std::vector<Tensor> forward(kernels::Kept&, std::span<const Tensor> inputs) override {
    sleep(nap_.forward, *nap_.log);
    return {inputs[0].view_as(inputs[0])};
  }
  std::vector<Tensor> backward(kernels::Kept&, std::vector<Tensor> gradients) override {
    sleep(nap_.input, *nap_.log);
    static const Tensor weight = at::zeros({1});  // whose gradient the nap stands for
    if (nap_.gradients->puts_off(weight))
      nap_.gradients->defer([&nap = nap_] { sleep(nap.weight, *nap.log); });
    else
      sleep(nap_.weight, *nap_.log);
    return gradients;
  }

 private:
  const Nap& nap_;
};

Slot floating_slot(const Flow& flow) {
  for (const Slot slot : {Slot::logits, Slot::h, Slot::q, Slot::x})
    if (flow[slot].defined()) return slot;
  return Slot::x;
}

}  // namespace

void add_naps(model::Model& model, std::span<Nap> naps) {
  for (std::size_t i = 0; i < model.cells.size(); ++i) {
    model::CellFunction& function = model.functions[i].forward;
    function = [forward = function, nap = &naps[i]](Flow& flow, const model::CellContext& context) {
      forward(flow, context);
      const Slot slot = floating_slot(flow);
      flow[slot] = kernels::apply(Sleep(*nap), {flow[slot]});
    };
  }
}

model::Model empty_model(int cells) {
  model::Model model;
  model.name = "empty";
  model.dimensions = {1, cells, 1, 1, 1, 1, 2, false};
  model.params.push_back(
      {"start.weight", {2, 1}, model::Placement::replicated, {0, 1}, "start.weight"});
  // The loss asks for the shape of the output layer.
  model.params.push_back(
      {"end.weight", {2, 1}, model::Placement::replicated, {0, 1}, "end.weight"});
  for (int i = 0; i < cells; ++i) {
    model::CellSpec cell;
    cell.name = fmt::format("layers.{}", i);
    if (i == 0) cell.params.push_back(0);
    if (i + 1 == cells) cell.params.push_back(1);
    cell.live = i == 0 ? std::vector<model::Live>{{Slot::tokens, model::Spread::tokens, {}}}
                       : std::vector<model::Live>{{Slot::x, model::Spread::tokens, {1}}};
    const auto forward = [i, last = i + 1 == cells](Flow& flow, const model::CellContext& context) {
      if (i == 0) flow[Slot::x] = at::embedding(context.weights[0].value, flow.take(Slot::tokens));
      if (last) flow[Slot::logits] = flow.take(Slot::x).expand({-1, 2}).contiguous();
    };
    model.cells.push_back(std::move(cell));
    model.functions.push_back({forward, {}});
    model.units.push_back({fmt::format("layers.{}", i), i, i + 1});
  }
  return model;
}

}  // namespace tessera::test
