// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/rms_norm.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

class RmsNorm final : public Operation {
 public:
  explicit RmsNorm(double eps) : eps_(eps) {}

  std::vector<at::Tensor> forward(Kept& kept, std::span<const at::Tensor> inputs) override {
    const at::Tensor &x = inputs[0], &weight = inputs[1];
    const at::Tensor rows = x.contiguous().view({-1, x.size(-1)});
    const auto [y, rstd] = backend_of(x).rms_norm(rows, weight, eps_);
    kept.save({rows, weight, rstd});
    return {y.view(x.sizes())};
  }

  std::vector<at::Tensor> backward(Kept& kept, std::vector<at::Tensor> gradients) override {
    const auto saved = kept.saved();
    const at::Tensor dy = gradients[0].contiguous();
    const auto [dx, dweight] =
        backend_of(dy).rms_norm_backward(dy.view_as(saved[0]), saved[0], saved[1], saved[2]);
    return {dx.view(dy.sizes()), dweight};
  }

 private:
  double eps_;
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  TESSERA_EXPECT(
      x.dim() >= 1 && x.size(-1) > 0 && weight.dim() == 1 && weight.size(0) == x.size(-1),
      "rms_norm of {} dims with a weight of {} elements", x.dim(), weight.numel());
  TESSERA_EXPECT(x.scalar_type() == weight.scalar_type(), "rms_norm of {} with a weight of {}",
                 c10::toString(x.scalar_type()), c10::toString(weight.scalar_type()));
  return apply(RmsNorm(eps), {x, weight.contiguous()});
}

}  // namespace tessera::kernels
