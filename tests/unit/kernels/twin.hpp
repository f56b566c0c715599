// SPDX-License-Identifier: Apache-2.0
// How a kernel is compared with its slow twin: plain LibTorch operations in f64 on the same
// (already rounded) inputs. The kernel computes on test_device(), the twin on the host.
#pragma once

#include <gtest/gtest.h>
#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <vector>

#include "support/relative_distance.hpp"
#include "test_device.hpp"

namespace tessera::kernels::test {

using tessera::test::exact;
using tessera::test::relative_distance;
using tessera::test::test_device;

/// What is asked of a kernel: relative L2 distance to the twin.
inline double tolerance(at::ScalarType dtype) {
  return dtype == at::kDouble ? 1e-12 : dtype == at::kFloat ? 1e-6 : 4e-3;
}

inline at::TensorOptions options(at::ScalarType dtype = at::kFloat) {
  return at::TensorOptions(dtype).device(test_device());
}

inline at::Tensor random(at::IntArrayRef shape, at::ScalarType dtype, double scale = 1.0) {
  return (at::randn(shape, at::kDouble) * scale).to(options(dtype));
}

inline void expect_close(const at::Tensor& got, const at::Tensor& want, double limit) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE(relative_distance(got, want), limit);
}

using Kernel = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Runs kernel and twin on `inputs` (the twin on f64 copies), compares results and, for one random
/// output gradient, the gradients. `roundings`: how often in a row the kernel rounds to the inputs'
/// type on its way.
inline void expect_twins(const Kernel& kernel, const Kernel& twin,
                         const std::vector<at::Tensor>& inputs, int roundings = 1) {
  const at::ScalarType dtype = inputs[0].scalar_type();
  std::vector<at::Tensor> ours, theirs;
  for (const at::Tensor& input : inputs) {
    ours.push_back(input.detach().clone(at::MemoryFormat::Preserve).requires_grad_());
    theirs.push_back(exact(input).clone().requires_grad_());
  }
  const at::Tensor y = kernel(ours), want = twin(theirs);
  EXPECT_EQ(y.scalar_type(), dtype);
  const double limit = roundings * tolerance(dtype);
  expect_close(y, want, limit);
  const at::Tensor dy = random(y.sizes(), dtype);
  torch::autograd::backward({y}, {dy});
  torch::autograd::backward({want}, {exact(dy)});
  for (std::size_t i = 0; i < inputs.size(); ++i)
    expect_close(ours[i].grad(), theirs[i].grad(), limit);
}

/// The three dtypes every kernel serves.
inline constexpr at::ScalarType dtypes[] = {at::kDouble, at::kFloat, at::kBFloat16};

}  // namespace tessera::kernels::test
