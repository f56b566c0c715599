// SPDX-License-Identifier: Apache-2.0
// One sweep of AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) or Adam (Kingma and Ba 2015,
// arXiv:1412.6980) over elements of the same scalars, with PyTorch's order of operations.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>

#include "tessera/base/box.hpp"

namespace tessera::kernels {

/// Scalars of one sweep; bias_correction1 = 1 - beta1^t, bias_correction2 = 1 - beta2^t.
struct AdamWScalars {
  double lr = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool coupled_decay = false;  ///< Adam: weight_decay is a part of the gradient
  double bias_correction1 = 1.0;
  double bias_correction2 = 1.0;
  double gradient_scale = 1.0;  ///< clip coefficient; the gradient is read times this
};

/// Stochastic rounding: a result stored in bf16 is rounded up with the probability of the part that
/// is cut, so that no small update is lost in the mean. The random bits of an element are those of
/// Philox2x32-10 by `key` and the element's row-major index in the whole parameter: the same on
/// every mesh.
struct StochasticRounding {
  std::uint64_t key = 0;  ///< of the run, the parameter and the step
  Shape whole;            ///< shape of the whole parameter
  Box box;                ///< what the sweep's tensors hold of it
};

/// g = grad * gradient_scale; p *= 1 - lr*weight_decay, with coupled_decay g += weight_decay*p
/// instead; m += (1-beta1)(g - m); v = beta2*v + (1-beta2)*g*g;
/// p -= lr/bias_correction1 * m / (sqrt(v)/sqrt(bias_correction2) + eps). All f64;
/// or each of param, grad, and exp_avg with exp_avg_sq f32 or bf16, computed in f32. compute_copy
/// undefined, or bf16 where param is f32: receives the new parameter rounded to nearest. All
/// contiguous, same count, same device. bf16 results are rounded to nearest, or as `rounding` says.
/// An element's bits do not depend on its place in the tensor, but on its place in the whole
/// parameter with `rounding`. Throws ContractViolation otherwise.
void adamw_sweep(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& exp_avg,
                 const at::Tensor& exp_avg_sq, const AdamWScalars& scalars,
                 const at::Tensor& compute_copy = {}, const StochasticRounding* rounding = nullptr);

}  // namespace tessera::kernels
