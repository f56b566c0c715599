// SPDX-License-Identifier: Apache-2.0
#include "clamped_gate.hpp"

#include <ATen/ops/sigmoid_backward.h>

#include "tessera/kernels/operation.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using kernels::Kept;

/// Of gate and up.
class GateWithin final : public kernels::Operation {
 public:
  explicit GateWithin(const ClampedGate& how) : how_(how) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    kept.save({inputs[0], inputs[1]});
    const Tensor g = inputs[0].clamp_max(how_.limit);
    return {raised(inputs[1]) * (g * at::sigmoid(how_.alpha * g))};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const Tensor &gate = saved[0], &up = saved[1], &dy = gradients[0];
    const Tensor g = gate.clamp_max(how_.limit), s = at::sigmoid(how_.alpha * g);
    const Tensor of_product = dy * raised(up);
    const Tensor of_g = of_product * s + how_.alpha * at::sigmoid_backward(of_product * g, s);
    return {of_g.masked_fill_(gate > how_.limit, 0),
            (dy * (g * s)).masked_fill_(up.abs() > how_.limit, 0)};
  }

 private:
  Tensor raised(const Tensor& up) const { return up.clamp(-how_.limit, how_.limit) + 1; }

  ClampedGate how_;
};

}  // namespace

Tensor clamped_gate(const Tensor& gate, const Tensor& up, const ClampedGate& how) {
  return kernels::apply(GateWithin(how), {gate, up});
}

}  // namespace tessera::model
