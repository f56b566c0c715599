// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/swiglu.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

/// Of gate and up.
struct Swiglu final : Operation {
  std::vector<at::Tensor> forward(Kept& kept, std::span<const at::Tensor> inputs) override {
    const at::Tensor &gate = inputs[0], &up = inputs[1];
    kept.save({gate, up});
    at::Tensor out = at::empty(gate.sizes(), gate.options());
    backend_of(gate).swiglu(rows_of(gate), rows_of(up), rows_of(out));
    return {out};
  }

  std::vector<at::Tensor> backward(Kept& kept, std::vector<at::Tensor> gradients) override {
    const auto saved = kept.saved();
    at::Tensor dgate = at::empty(saved[0].sizes(), saved[0].options());
    at::Tensor dup = at::empty(saved[1].sizes(), saved[1].options());
    backend_of(dgate).swiglu_backward(rows_of(gradients[0]), rows_of(saved[0]), rows_of(saved[1]),
                                      rows_of(dgate), rows_of(dup));
    return {dgate, dup};
  }
};

/// Of [gate, up] side by side.
struct SwigluPacked final : Operation {
  std::vector<at::Tensor> forward(Kept& kept, std::span<const at::Tensor> inputs) override {
    const at::Tensor& gate_up = inputs[0];
    kept.save({gate_up});
    const auto halves = gate_up.chunk(2, -1);
    at::Tensor out = at::empty(halves[0].sizes(), gate_up.options());
    backend_of(gate_up).swiglu(rows_of(halves[0]), rows_of(halves[1]), rows_of(out));
    return {out};
  }

  std::vector<at::Tensor> backward(Kept& kept, std::vector<at::Tensor> gradients) override {
    const auto saved = kept.saved();
    const auto halves = saved[0].chunk(2, -1);
    at::Tensor d = at::empty(saved[0].sizes(), saved[0].options());
    const auto d_halves = d.chunk(2, -1);
    backend_of(d).swiglu_backward(rows_of(gradients[0]), rows_of(halves[0]), rows_of(halves[1]),
                                  rows_of(d_halves[0]), rows_of(d_halves[1]));
    return {d};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  TESSERA_EXPECT(
      gate.dim() >= 1 && gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
      "swiglu of tensors that differ in shape or dtype");
  return apply(Swiglu(), {gate, up});
}

at::Tensor swiglu_packed(const at::Tensor& gate_up) {
  TESSERA_EXPECT(gate_up.dim() >= 1 && gate_up.size(-1) > 0 && gate_up.size(-1) % 2 == 0,
                 "swiglu_packed needs an even last dim, not {}",
                 gate_up.dim() < 1 ? 0 : gate_up.size(-1));
  return apply(SwigluPacked(), {gate_up});
}

}  // namespace tessera::kernels
