// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/swiglu.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

struct Swiglu final : Operation {
  std::vector<at::Tensor> forward(Kept& kept, std::span<const at::Tensor> inputs) override {
    const at::Tensor &gate = inputs[0], &up = inputs[1];
    kept.save({gate, up});
    at::Tensor out = at::empty(gate.sizes(), gate.options());
    backend_of(gate).swiglu({{rows_of(gate), rows_of(up)}, {rows_of(out)}});
    return {out};
  }

  std::vector<at::Tensor> backward(Kept& kept, std::vector<at::Tensor> gradients) override {
    const auto saved = kept.saved();
    at::Tensor dgate = at::empty(saved[0].sizes(), saved[0].options());
    at::Tensor dup = at::empty(saved[1].sizes(), saved[1].options());
    backend_of(dgate).swiglu_backward(
        {{rows_of(gradients[0]), rows_of(saved[0]), rows_of(saved[1])},
         {rows_of(dgate), rows_of(dup)}});
    return {dgate, dup};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  TESSERA_EXPECT(
      gate.dim() >= 1 && gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
      "swiglu of tensors that differ in shape or dtype");
  return apply(Swiglu(), {gate, up});
}

}  // namespace tessera::kernels
