// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/linear.hpp"

#include <gtest/gtest.h>

#include <numeric>

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

/// Weights of `rows` in one memory, or apart.
std::vector<Tensor> weights_of(const std::vector<std::int64_t>& rows, bool together) {
  at::manual_seed(3);
  const Tensor memory = at::randn({std::reduce(rows.begin(), rows.end()), 5}, at::kDouble);
  std::vector<Tensor> weights;
  for (const Tensor& part : memory.split_with_sizes(rows))
    weights.push_back((together ? part.variable_data() : part.clone()).requires_grad_());
  return weights;
}

TEST(Linears, EqualLinearOfEachAtOnceAndLater) {
  WeightGradients gradients;
  const Tensor data = at::randn({6, 5}, at::kDouble), dy = at::randn({6, 9}, at::kDouble);
  const std::vector<std::int64_t> rows{4, 2, 3};
  const auto run = [&](bool together, auto product) {
    Tensor x = data.clone().requires_grad_();
    std::vector<Tensor> weights = weights_of(rows, together);
    weights[1].mutable_grad() = at::ones_like(weights[1]);
    at::cat(product(x, weights), 1).backward(dy);
    for (const auto& compute : gradients.take()) compute();
    std::vector<Tensor> found{x.grad()};
    for (const Tensor& weight : weights) found.push_back(weight.grad());
    return found;
  };
  const auto ours = [&](const Tensor& x, const std::vector<Tensor>& weights) {
    return linears(x, weights, gradients);
  };
  const auto expected = run(false, [](const Tensor& x, const std::vector<Tensor>& weights) {
    std::vector<Tensor> products;
    for (const Tensor& weight : weights) products.push_back(at::linear(x, weight));
    return products;
  });
  const auto at_once = run(true, ours);
  for (const bool together : {true, false}) {
    gradients.put_off();
    const auto later = run(together, ours);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at_once[i].allclose(expected[i], 1e-14, 1e-14)) << i;
      EXPECT_TRUE(at::equal(later[i], at_once[i])) << i;
    }
  }
}

TEST(Linears, LeaveFrozenWeightsAlone) {
  WeightGradients gradients;
  for (const bool later : {false, true}) {
    std::vector<Tensor> weights = weights_of({4, 2}, true);
    weights[0].requires_grad_(false);
    const Tensor x = at::randn({6, 5}, at::kDouble).requires_grad_();
    if (later) gradients.put_off();
    at::cat(linears(x, weights, gradients), 1).sum().backward();
    const auto work = gradients.take();
    EXPECT_EQ(work.size(), later ? 1u : 0u);
    for (const auto& compute : work) compute();
    EXPECT_FALSE(weights[0].grad().defined());
    EXPECT_TRUE(weights[1].grad().allclose(x.detach().sum(0).expand({2, 5})));
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
