// SPDX-License-Identifier: Apache-2.0
// Operations that keep less than autograd would, against the same formulas in autograd: equal bits.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "clamped_gate.hpp"
#include "tessera/kernels/operation.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensor&, const Tensor&)>;

Tensor drawn(at::IntArrayRef sizes, at::ScalarType type, double factor) {
  const std::int64_t count = c10::multiply_integers(sizes);
  return (at::arange(count, at::kDouble).mul(2.39996).sin() * factor).view(sizes).to(type);
}

/// The value, and gradients of both inputs.
Tensors all_of(const Function& function, const Tensor& a, const Tensor& b) {
  const Tensor x = a.detach().set_requires_grad(true), y = b.detach().set_requires_grad(true);
  const Tensor value = function(x, y);
  const Tensor weights = drawn(value.sizes(), at::kDouble, 1);
  kernels::run_backward({value}, {weights.to(value.scalar_type())});
  return {value, x.grad(), y.grad()};
}

void expect_equal(const Function& ours, const Function& plain, const Tensor& a, const Tensor& b) {
  const Tensors mine = all_of(ours, a, b), theirs = all_of(plain, a, b);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].scalar_type(), theirs[i].scalar_type()) << i;
    EXPECT_TRUE(mine[i].equal(theirs[i]))
        << i << ": " << (mine[i] - theirs[i]).abs().max().item<double>();
  }
}

/// Some values on either side of the limits.
TEST(Kept, OfAClampedGate) {
  const ClampedGate how{};
  const auto ours = [&](const Tensor& gate, const Tensor& up) {
    return clamped_gate(gate, up, how);
  };
  const auto plain = [&](const Tensor& gate, const Tensor& up) {
    const Tensor g = gate.clamp_max(how.limit);
    return (up.clamp(-how.limit, how.limit) + 1) * (g * at::sigmoid(how.alpha * g));
  };
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat, at::kDouble}) {
    const Tensor gate = drawn({7, 9}, type, 2 * how.limit), up = drawn({9, 7}, type, 2 * how.limit);
    expect_equal(ours, plain, gate, up.t());
    expect_equal(ours, plain, gate.narrow(0, 0, 0), up.t().narrow(0, 0, 0));
  }
}

}  // namespace
}  // namespace tessera::model
