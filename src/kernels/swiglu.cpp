#include "tessera/kernels/swiglu.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Swiglu : torch::autograd::Function<Swiglu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up) {
    context->save_for_backward({gate, up});
    at::Tensor out = at::empty(gate.sizes(), gate.options());
    backend_of(gate).swiglu(rows_of(gate), rows_of(up), rows_of(out));
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    at::Tensor dgate = at::empty(saved[0].sizes(), saved[0].options());
    at::Tensor dup = at::empty(saved[1].sizes(), saved[1].options());
    backend_of(dgate).swiglu_backward(rows_of(gradients[0]), rows_of(saved[0]), rows_of(saved[1]), rows_of(dgate), rows_of(dup));
    return {dgate, dup};
  }
};

struct SwigluPacked : torch::autograd::Function<SwigluPacked> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    const auto halves = gate_up.chunk(2, -1);
    at::Tensor out = at::empty(halves[0].sizes(), gate_up.options());
    backend_of(gate_up).swiglu(rows_of(halves[0]), rows_of(halves[1]), rows_of(out));
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto halves = saved[0].chunk(2, -1);
    at::Tensor d = at::empty(saved[0].sizes(), saved[0].options());
    const auto d_halves = d.chunk(2, -1);
    backend_of(d).swiglu_backward(rows_of(gradients[0]), rows_of(halves[0]), rows_of(halves[1]), rows_of(d_halves[0]),
                                  rows_of(d_halves[1]));
    return {d};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  TESSERA_EXPECT(gate.dim() >= 1 && gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
                 "swiglu of tensors that differ in shape or dtype");
  return Swiglu::apply(gate, up);
}

at::Tensor swiglu_packed(const at::Tensor& gate_up) {
  TESSERA_EXPECT(gate_up.dim() >= 1 && gate_up.size(-1) > 0 && gate_up.size(-1) % 2 == 0,
                 "swiglu_packed needs an even last dim, not {}", gate_up.dim() < 1 ? 0 : gate_up.size(-1));
  return SwigluPacked::apply(gate_up);
}

}  // namespace tessera::kernels
