#include "tessera/model/routing.hpp"

#include <gtest/gtest.h>

#include "tessera/model/balance_loss.hpp"

namespace tessera::model {
namespace {

using torch::Tensor;

TEST(Routing, ForcedEvenDealsExpertsInTurn) {
  RoutingRule rule;
  rule.experts = 4;
  rule.top_k = 3;
  rule.forced_even = true;
  const Routing routing = route(torch::randn({4, 4}), {}, rule);
  EXPECT_TRUE(routing.chosen.equal(torch::arange(12).remainder(4).view({4, 3})));
}

TEST(Routing, BiasDecidesButDoesNotWeigh) {
  RoutingRule rule;
  rule.experts = 4;
  rule.top_k = 1;
  const Tensor logits = torch::tensor({{3.0, 0.0, 1.0, 2.0}});
  const Routing routing = route(logits, torch::tensor({0.0, 9.0, 0.0, 0.0}), rule);
  EXPECT_EQ(routing.chosen.item<std::int64_t>(), 1);
  EXPECT_NEAR(routing.weights.item<double>(), torch::softmax(logits, 1)[0][1].item<double>(), 1e-7);
}

TEST(Routing, OnlyTheBestGroupsAreLookedAt) {
  RoutingRule rule;
  rule.experts = 6;
  rule.top_k = 2;
  rule.score = ScoreFunction::sigmoid;
  rule.groups = 3;
  rule.kept_groups = 1;
  // The best expert stands alone in group 0; group 2 has the better pair.
  const Routing routing = route(torch::tensor({{5.0, -9.0, 0.0, 0.0, 2.0, 2.5}}), {}, rule);
  EXPECT_TRUE(std::get<0>(routing.chosen.sort(1)).equal(torch::tensor({{4, 5}})));
}

/// transformers' load_balancing_loss_func, restated for two layers.
TEST(BalanceLoss, IsTheSwitchLossOverAllLayersTogether) {
  const std::int64_t experts = 5, tokens = 7;
  RoutingRule rule;
  rule.experts = experts;
  Tensor slot, counts = torch::zeros({experts}, torch::kFloat64), sums = counts.clone();
  double z = 0;
  for (int layer = 0; layer < 2; ++layer) {
    const Tensor logits = torch::randn({tokens, experts}, torch::kFloat64);
    const Routing routing = route(logits, {}, rule);
    const Tensor terms = balance_terms(routing.chosen, routing.probabilities, logits);
    slot = slot.defined() ? slot + terms : terms;
    counts += torch::one_hot(routing.chosen, experts).sum(at::IntArrayRef({0, 1}));
    sums += torch::softmax(logits, 1).sum(0);
    z += logits.exp().sum(1).log().square().sum().item<double>();
  }
  const BalanceLoss both{0.1, 0.01, experts, 2};
  const double expected = 0.1 * experts * (counts / 14 * (sums / 14)).sum().item<double>() + 0.01 * z / 14;
  const auto here = [](const Tensor& t) { return t; };
  EXPECT_NEAR(balance_loss(both, slot, tokens, here).item<double>(), expected, 1e-12);
}

TEST(BalanceLoss, BiasStepsTowardsTheMean) {
  const Tensor bias = torch::zeros({4});
  balance_bias(bias, torch::tensor({10, 2, 6, 6}), 0.5);
  EXPECT_TRUE(bias.equal(torch::tensor({-0.5F, 0.5F, 0.0F, 0.0F})));
  balance_bias(bias, torch::tensor({9, 1, 1, 1}), 0.5);  // signs -, +, +, +: their mean is taken off
  EXPECT_TRUE(bias.allclose(torch::tensor({-1.25F, 0.75F, 0.25F, 0.25F})));
}

}  // namespace
}  // namespace tessera::model
