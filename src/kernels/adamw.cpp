// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/adamw.hpp"

#include <cmath>

#include "backend.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

void check(const at::Tensor& param, const at::Tensor& other, bool may_be_bf16, const char* name) {
  TESSERA_EXPECT(
      other.numel() == param.numel() && other.is_contiguous() && other.device() == param.device(),
      "adamw: {} is not a contiguous companion of the parameter ({} elements for {})", name,
      other.numel(), param.numel());
  TESSERA_EXPECT(other.scalar_type() == param.scalar_type() ||
                     (may_be_bf16 && other.scalar_type() == at::kBFloat16),
                 "adamw: {} has dtype {}", name, c10::toString(other.scalar_type()));
}

AdamWArguments arguments_of(const AdamWScalars& s) {
  return {.gradient_scale = s.gradient_scale,
          .decay = 1.0 - s.lr * s.weight_decay,
          .beta1 = s.beta1,
          .beta2 = s.beta2,
          .root_correction2 = std::sqrt(s.bias_correction2),
          .eps = s.eps,
          .step = s.lr / s.bias_correction1};
}

}  // namespace

void adamw_sweep(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& exp_avg,
                 const at::Tensor& exp_avg_sq, const AdamWScalars& scalars,
                 const at::Tensor& compute_copy) {
  const at::NoGradGuard no_grad;
  const bool single = param.scalar_type() == at::kFloat;
  TESSERA_EXPECT(param.is_contiguous() && (single || param.scalar_type() == at::kDouble),
                 "adamw: parameters are contiguous f32 or f64");
  check(param, grad, single, "the gradient");
  check(param, exp_avg, single, "exp_avg");
  check(exp_avg, exp_avg_sq, false, "exp_avg_sq");
  if (compute_copy.defined()) {
    check(param, compute_copy, single, "the copy for computing");
    TESSERA_EXPECT(compute_copy.scalar_type() == at::kBFloat16,
                   "adamw: the copy for computing is bf16");
  }
  if (param.numel() > 0)
    backend_of(param).adamw(param, grad, exp_avg, exp_avg_sq, arguments_of(scalars), compute_copy);
}

}  // namespace tessera::kernels
