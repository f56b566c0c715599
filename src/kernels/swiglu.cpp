// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/swiglu.hpp"

#include <array>
#include <utility>

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/joined.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

/// Of gate and up, by one kernel each way.
class Gated final : public Operation {
 public:
  using Kernel = ElementKernel Backend::*;
  Gated(Kernel forward, Kernel backward, const ElementNumbers& numbers)
      : forward_(forward), backward_(backward), numbers_(numbers) {}

  std::vector<at::Tensor> forward(Kept& kept, std::span<const at::Tensor> inputs) override {
    const at::Tensor &gate = inputs[0], &up = inputs[1];
    kept.save({gate, up});
    at::Tensor out = at::empty(gate.sizes(), gate.options());
    (backend_of(gate).*forward_)({{rows_of(gate), rows_of(up)}, {rows_of(out)}, numbers_});
    return {out};
  }

  std::vector<at::Tensor> backward(Kept& kept, std::vector<at::Tensor> gradients) override {
    const auto saved = kept.saved();
    std::vector<at::Tensor> made = memory_like(saved);
    (backend_of(made[0]).*backward_)({{rows_of(gradients[0]), rows_of(saved[0]), rows_of(saved[1])},
                                      {rows_of(made[0]), rows_of(made[1])},
                                      numbers_});
    return made;
  }

 private:
  /// Columns of one matrix, if the inputs are.
  static std::vector<at::Tensor> memory_like(const std::vector<at::Tensor>& gate_up) {
    const at::Tensor& gate = gate_up[0];
    if (gate.dim() != 2 || !are_neighbours(gate_up))
      return {at::empty(gate.sizes(), gate.options()), at::empty(gate.sizes(), gate.options())};
    const std::int64_t width = gate.size(1);
    return columns_of(at::empty({gate.size(0), 2 * width}, gate.options()),
                      std::array{width, width});
  }

  Kernel forward_, backward_;
  ElementNumbers numbers_;
};

at::Tensor apply_gate(Gated operation, const at::Tensor& gate, const at::Tensor& up) {
  TESSERA_EXPECT(
      gate.dim() >= 1 && gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
      "a gate and values that differ in shape or dtype");
  return apply(std::move(operation), {gate, up});
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return apply_gate({&Backend::swiglu, &Backend::swiglu_backward, {}}, gate, up);
}

at::Tensor clamped_gate(const at::Tensor& gate, const at::Tensor& up, double alpha, double limit) {
  return apply_gate(
      {&Backend::clamped_gate, &Backend::clamped_gate_backward, {.alpha = alpha, .limit = limit}},
      gate, up);
}

}  // namespace tessera::kernels
