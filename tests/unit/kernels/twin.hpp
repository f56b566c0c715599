// How a kernel is compared with its slow twin: plain LibTorch operations in f64 on the same (already rounded) inputs.
#pragma once

#include <gtest/gtest.h>
#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <vector>

namespace tessera::kernels::test {

/// What is asked of a kernel: relative L2 distance to the twin.
inline double tolerance(at::ScalarType dtype) {
  return dtype == at::kDouble ? 1e-12 : dtype == at::kFloat ? 1e-6 : 4e-3;
}

inline at::Tensor random(at::IntArrayRef shape, at::ScalarType dtype, double scale = 1.0) {
  return (at::randn(shape, at::kDouble) * scale).to(dtype);
}

inline double relative_distance(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor g = got.detach().to(at::kDouble), w = want.detach().to(at::kDouble);
  return ((g - w).norm() / (w.norm() + 1e-300)).item<double>();
}

inline void expect_close(const at::Tensor& got, const at::Tensor& want, double limit) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE(relative_distance(got, want), limit);
}

using Kernel = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Runs kernel and twin on `inputs` (the twin on f64 copies), compares results and, for one random output gradient, the
/// gradients.
inline void expect_twins(const Kernel& kernel, const Kernel& twin, const std::vector<at::Tensor>& inputs) {
  const at::ScalarType dtype = inputs[0].scalar_type();
  std::vector<at::Tensor> ours, theirs;
  for (const at::Tensor& input : inputs) {
    ours.push_back(input.detach().clone(at::MemoryFormat::Preserve).requires_grad_());
    theirs.push_back(input.detach().to(at::kDouble).clone().requires_grad_());
  }
  const at::Tensor y = kernel(ours), want = twin(theirs);
  EXPECT_EQ(y.scalar_type(), dtype);
  expect_close(y, want, tolerance(dtype));
  const at::Tensor dy = random(y.sizes(), dtype);
  torch::autograd::backward({y}, {dy});
  torch::autograd::backward({want}, {dy.to(at::kDouble)});
  for (std::size_t i = 0; i < inputs.size(); ++i) expect_close(ours[i].grad(), theirs[i].grad(), tolerance(dtype));
}

/// The three dtypes every kernel serves.
inline constexpr at::ScalarType dtypes[] = {at::kDouble, at::kFloat, at::kBFloat16};

}  // namespace tessera::kernels::test
