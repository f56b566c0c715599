// SPDX-License-Identifier: Apache-2.0
#include "tessera/model/routing.hpp"

#include <gtest/gtest.h>

#include "tessera/model/balance_loss.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

TEST(Routing, ForcedEvenDealsExpertsInTurn) {
  RoutingRule rule;
  rule.experts = 4;
  rule.top_k = 3;
  rule.forced_even = true;
  const Routing routing = route(at::randn({4, 4}), {}, rule);
  EXPECT_TRUE(routing.chosen.equal(at::arange(12).remainder(4).view({4, 3})));
}

TEST(Routing, BiasDecidesButDoesNotWeigh) {
  RoutingRule rule;
  rule.experts = 4;
  rule.top_k = 1;
  const Tensor logits = at::tensor({3.0F, 0.0F, 1.0F, 2.0F}).view({1, 4});
  const Routing routing = route(logits, at::tensor({0.0F, 9.0F, 0.0F, 0.0F}), rule);
  EXPECT_EQ(routing.chosen.item<std::int64_t>(), 1);
  EXPECT_NEAR(routing.weights.item<double>(), at::softmax(logits, 1)[0][1].item<double>(), 1e-7);
}

TEST(Routing, OnlyTheBestGroupsAreLookedAt) {
  RoutingRule rule;
  rule.experts = 6;
  rule.top_k = 2;
  rule.score = ScoreFunction::sigmoid;
  rule.groups = 3;
  rule.kept_groups = 1;
  // The best expert stands alone in group 0; group 2 has the better pair.
  const Routing routing =
      route(at::tensor({5.0F, -9.0F, 0.0F, 0.0F, 2.0F, 2.5F}).view({1, 6}), {}, rule);
  EXPECT_TRUE(
      std::get<0>(routing.chosen.sort(1)).equal(at::tensor({4, 5}, at::kLong).view({1, 2})));
}

/// transformers' load_balancing_loss_func, restated for two layers.
TEST(BalanceLoss, IsTheSwitchLossOverAllLayersTogether) {
  const std::int64_t experts = 5, tokens = 7;
  RoutingRule rule;
  rule.experts = experts;
  Tensor slot, counts = at::zeros({experts}, at::kDouble), sums = counts.clone();
  double z = 0;
  for (int layer = 0; layer < 2; ++layer) {
    const Tensor logits = at::randn({tokens, experts}, at::kDouble);
    const Routing routing = route(logits, {}, rule);
    const Tensor terms =
        balance_terms(count_choices(routing.chosen, logits.size(1)), routing.probabilities, logits);
    slot = slot.defined() ? slot + terms : terms;
    counts += at::one_hot(routing.chosen, experts).sum(at::IntArrayRef({0, 1}));
    sums += at::softmax(logits, 1).sum(0);
    z += logits.exp().sum(1).log().square().sum().item<double>();
  }
  const BalanceLoss both{0.1, 0.01, experts, 2};
  const double expected =
      0.1 * experts * (counts / 14 * (sums / 14)).sum().item<double>() + 0.01 * z / 14;
  const auto here = [](const Tensor& t) { return t; };
  EXPECT_NEAR(balance_loss(both, slot, tokens, here).item<double>(), expected, 1e-12);
}

TEST(BalanceLoss, BiasStepsTowardsTheMean) {
  const Tensor bias = at::zeros({4});
  balance_bias(bias, at::tensor({10, 2, 6, 6}, at::kLong), 0.5);
  EXPECT_TRUE(bias.equal(at::tensor({-0.5F, 0.5F, 0.0F, 0.0F})));
  balance_bias(bias, at::tensor({9, 1, 1, 1}, at::kLong),
               0.5);  // signs -, +, +, +: their mean is taken off
  EXPECT_TRUE(bias.allclose(at::tensor({-1.25F, 0.75F, 0.25F, 0.25F})));
}

}  // namespace
}  // namespace tessera::model
