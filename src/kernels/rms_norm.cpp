// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/rms_norm.hpp"

#include "backend.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

Tensor as_rows(const Tensor& x) { return x.contiguous().view({-1, x.size(-1)}); }

class RmsNorm final : public Operation {
 public:
  explicit RmsNorm(double eps) : eps_(eps) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &x = inputs[0], &weight = inputs[1];
    const Tensor rows = as_rows(x);
    const NormValue value = backend_of(x).rms_norm(rows, {}, weight, eps_);
    kept.save({rows, weight, value.rstd});
    return {value.y.view(x.sizes())};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const Tensor dy = gradients[0].contiguous();
    const auto [dx, dweight] =
        backend_of(dy).rms_norm_backward(dy.view_as(saved[0]), {}, saved[0], saved[1], saved[2]);
    return {dx.view(dy.sizes()), dweight};
  }

 private:
  double eps_;
};

/// Of weight, x and perhaps a residual; gives the norm and the sum.
class SummedNorm final : public Operation {
 public:
  explicit SummedNorm(double eps) : eps_(eps) {}

  std::vector<Tensor> forward(Kept& kept, std::span<const Tensor> inputs) override {
    const Tensor &weight = inputs[0], &x = inputs[1];
    summands_ = inputs.size() - 1;
    const Tensor rows = as_rows(x), more = summands_ > 1 ? as_rows(inputs[2]) : Tensor();
    const NormValue value = backend_of(x).rms_norm(rows, more, weight, eps_);
    const Tensor sum = summands_ > 1 ? value.sum : rows;
    kept.save({sum, weight, value.rstd});
    return {value.y.view(x.sizes()), sum.view(x.sizes()).variable_data()};
  }

  std::vector<Tensor> backward(Kept& kept, std::vector<Tensor> gradients) override {
    const auto saved = kept.saved();
    const Tensor dy = as_rows(gradients[0]), dsum = as_rows(gradients[1]);
    const auto [dx, dweight] =
        backend_of(dy).rms_norm_backward(dy, dsum, saved[0], saved[1], saved[2]);
    std::vector<Tensor> of_inputs{dweight};
    of_inputs.resize(1 + summands_, dx.view(gradients[0].sizes()));
    return of_inputs;
  }

 private:
  double eps_;
  std::size_t summands_ = 0;
};

void expect_norm(const Tensor& x, const Tensor& weight) {
  TESSERA_EXPECT(
      x.dim() >= 1 && x.size(-1) > 0 && weight.dim() == 1 && weight.size(0) == x.size(-1),
      "rms_norm of {} dims with a weight of {} elements", x.dim(), weight.numel());
  TESSERA_EXPECT(x.scalar_type() == weight.scalar_type(), "rms_norm of {} with a weight of {}",
                 c10::toString(x.scalar_type()), c10::toString(weight.scalar_type()));
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  expect_norm(x, weight);
  return apply(RmsNorm(eps), {x, weight.contiguous()});
}

SumAndNorm summed_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                           const at::Tensor& weight, double eps) {
  expect_norm(x, weight);
  TESSERA_EXPECT(!residual.defined() ||
                     (residual.sizes() == x.sizes() && residual.scalar_type() == x.scalar_type()),
                 "rms_norm of a sum of tensors that differ in shape or dtype");
  std::vector<at::Tensor> inputs{weight.contiguous(), x};
  if (residual.defined()) inputs.push_back(residual);
  const auto made = apply_all(std::make_unique<SummedNorm>(eps), std::move(inputs));
  return {made[1], made[0]};
}

}  // namespace tessera::kernels
