// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/linear.hpp"

#include <gtest/gtest.h>

#include "tessera/kernels/grouped_mm.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;

struct Gradients {
  Tensor x, weight;
};

/// Of a product used twice, as a microbatch whose weight already has a gradient would.
Gradients gradients_of(
    const std::function<Tensor(const Tensor&, const Tensor&)>& product,
    const std::function<void()>& behind = [] {}) {
  at::manual_seed(1);
  const Tensor x = at::randn({6, 5}).requires_grad_(), weight = at::randn({3, 5}).requires_grad_();
  weight.mutable_grad() = at::randn({3, 5});
  product(x, weight).square().sum().backward();
  behind();
  return {x.grad(), weight.grad()};
}

TEST(Linear, HasTheBitsOfTorchsOwnAtOnceAndLater) {
  WeightGradients gradients;
  const auto ours = [&](const Tensor& x, const Tensor& weight) {
    return linear(x, weight, gradients);
  };
  const Gradients expected =
      gradients_of([](const Tensor& x, const Tensor& weight) { return at::linear(x, weight); });
  const Gradients at_once = gradients_of(ours);
  gradients.put_off();
  const Gradients later = gradients_of(ours, [&] {
    const auto work = gradients.take();
    EXPECT_EQ(work.size(), 1u);
    for (const auto& compute : work) compute();
  });
  for (const Gradients& each : {at_once, later}) {
    EXPECT_TRUE(at::equal(each.x, expected.x));
    EXPECT_TRUE(at::equal(each.weight, expected.weight));
  }
  EXPECT_FALSE(gradients.puts_off(expected.weight));
}

TEST(Linear, ExpertsToo) {
  WeightGradients gradients;
  const Tensor counts = at::tensor({4, 0, 2}, at::kLong);
  const auto run = [&](const std::function<Tensor(const Tensor&, const Tensor&)>& product) {
    at::manual_seed(2);
    const Tensor x = at::randn({6, 5}).requires_grad_(),
                 weight = at::randn({3, 4, 5}).requires_grad_();
    product(x, weight).square().sum().backward();
    for (const auto& compute : gradients.take()) compute();
    return Gradients{x.grad(), weight.grad()};
  };
  const auto ours = [&](const Tensor& x, const Tensor& weight) {
    return expert_linear(x, weight, counts, gradients);
  };
  const Gradients expected =
      run([&](const Tensor& x, const Tensor& w) { return kernels::grouped_mm(x, w, counts); });
  const Gradients at_once = run(ours);
  gradients.put_off();
  const Gradients later = run(ours);
  for (const Gradients& each : {at_once, later}) {
    EXPECT_TRUE(at::equal(each.x, expected.x));
    EXPECT_TRUE(at::equal(each.weight, expected.weight));
  }
}

TEST(Linear, ComputesOnlyWhatIsAskedFor) {
  WeightGradients gradients;
  gradients.put_off();
  const Tensor x = at::randn({2, 3}).requires_grad_(), frozen = at::randn({4, 3});
  linear(x, frozen, gradients).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_TRUE(gradients.take().empty());
  const Tensor weight = at::randn({4, 3}).requires_grad_(), data = at::randn({2, 3});
  linear(data, weight, gradients).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(data.grad().defined());
}

}  // namespace
}  // namespace tessera::parallel
