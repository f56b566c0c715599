#include "tessera/kernels/rms_norm.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double eps) {
    const at::Tensor rows = x.contiguous().view({-1, x.size(-1)});
    const auto [y, rstd] = backend_of(x).rms_norm(rows, weight, eps);
    context->save_for_backward({rows, weight, rstd});
    return y.view(x.sizes());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dy = gradients[0].contiguous();
    const auto [dx, dweight] = backend_of(dy).rms_norm_backward(dy.view_as(saved[0]), saved[0], saved[1], saved[2]);
    return {dx.view(dy.sizes()), dweight, {}};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  TESSERA_EXPECT(x.dim() >= 1 && x.size(-1) > 0 && weight.dim() == 1 && weight.size(0) == x.size(-1),
                 "rms_norm of {} dims with a weight of {} elements", x.dim(), weight.numel());
  TESSERA_EXPECT(x.scalar_type() == weight.scalar_type(), "rms_norm of {} with a weight of {}", c10::toString(x.scalar_type()),
                 c10::toString(weight.scalar_type()));
  return RmsNorm::apply(x, weight.contiguous(), eps);
}

}  // namespace tessera::kernels
