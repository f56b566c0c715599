// SPDX-License-Identifier: Apache-2.0
#include "tokens_once.hpp"

#include <gtest/gtest.h>

#include "tessera/kernels/operation.hpp"
#include "tessera/model/routing.hpp"

namespace tessera::model {
namespace {

/// One of two ranks, which gets what it sends.
class Loop : public TokenExchange {
 public:
  explicit Loop(FixedRows fixed = {}, std::int64_t rank = 0) : fixed_(fixed), rank_(rank) {}
  std::int64_t ranks() const override { return 2; }
  std::int64_t rank() const override { return rank_; }
  bool has_free_rows() const override { return fixed_.choices > 0; }
  bool sends_once() const override { return true; }
  FixedRows fixed_rows(const ChoiceCounts& /*of*/) const override { return fixed_; }
  void expect_fit(const at::Tensor& counts, std::int64_t most) const override {
    misfits += counts.gt(most).sum().item<std::int64_t>();
  }
  at::Tensor counts(const at::Tensor& sent) const override { return sent; }
  Arrival send(const at::Tensor& rows, const at::Tensor& /*out*/,
               const at::Tensor& /*in*/) const override {
    messages.push_back(rows);
    return [rows] { return rows; };
  }

  mutable std::int64_t misfits = 0;
  mutable std::vector<at::Tensor> messages;

 private:
  FixedRows fixed_;
  std::int64_t rank_;
};

/// Tokens 0, 1, ... whose rows are their numbers, and scores 10 t + k.
Flow sent(const Loop& exchange, const at::Tensor& chosen) {
  const at::Tensor token = at::arange(chosen.size(0), at::kDouble).unsqueeze(1);
  RoutingRule rule;
  rule.experts = 4;
  rule.top_k = chosen.size(1);
  Flow flow;
  flow[Slot::m] = token;
  flow[Slot::route] = chosen;
  flow[Slot::sent] = count_choices(chosen, rule.experts);
  flow[Slot::scores] = 10 * token + at::arange(chosen.size(1), at::kDouble);
  Arrival arrival;
  CellContext context;
  context.exchange = &exchange;
  context.arrival = &arrival;
  send_tokens_once(flow, context, rule);
  take_tokens(flow, context, rule);
  return flow;
}

at::Tensor numbers(std::vector<std::int64_t> values) {
  return at::tensor(values, at::kLong).view({-1, 2});
}

at::Tensor column(std::vector<double> values) {
  return at::tensor(values, at::kDouble).unsqueeze(1);
}

TEST(TokensOnce, TravelToEachRankOfTheirExperts) {
  const Loop exchange;
  Flow flow = sent(exchange, numbers({0, 1, 0, 2, 3, 2}));
  EXPECT_TRUE(at::equal(exchange.messages[1], column({0, 1, 1, 2})));
  EXPECT_TRUE(at::equal(flow[Slot::home], numbers({0, -1, 1, 2, -1, 3})));
  EXPECT_TRUE(at::equal(exchange.messages[0].narrow(1, 0, 2),
                        at::tensor({0., 1., 10., 11., 10., 11., 20., 21.}).view({4, 2})));
}

/// Here are experts 0 and 1: what other ranks hold is left to them.
TEST(TokensOnce, LieExpertByExpert) {
  const Loop exchange;
  Flow flow = sent(exchange, numbers({1, 0, 0, 1}));
  EXPECT_TRUE(at::equal(flow[Slot::m], column({0, 1, 0, 1})));
  EXPECT_TRUE(at::equal(flow[Slot::received], numbers({2, 2})));
  EXPECT_TRUE(at::equal(flow[Slot::route], numbers({2, 0, 1, 3})));
}

TEST(TokensOnce, AreForTheExpertsOfTheirRank) {
  const Loop exchange({.choices = 2, .tokens = 2}, 1);
  Flow flow = sent(exchange, numbers({1, 3, 2, 0}));
  EXPECT_TRUE(at::equal(flow[Slot::m].narrow(0, 0, 4), column({1, 1, 0, 0})))
      << "each comes in the message of each rank";
  EXPECT_TRUE(at::equal(flow[Slot::received], numbers({2, 2})));
  EXPECT_TRUE(at::equal(flow[Slot::route], numbers({-1, 2, 0, -1, -1, 3, 1, -1})));
}

/// Experts that return what they get: sums are those of all scores, and of their gradients each has
/// the token's value.
TEST(TokensOnce, ReturnWeightedSums) {
  for (const bool before : {false, true})
    for (const FixedRows& fixed : {FixedRows{}, FixedRows{.choices = 4, .tokens = 3}}) {
      const Loop exchange(fixed);
      const at::Tensor scores = at::randn({3, 2}, at::kDouble).requires_grad_(),
                       values = at::randn({3, 5}, at::kDouble).requires_grad_();
      Flow flow;
      flow[Slot::m] = values;
      flow[Slot::scores] = scores;
      flow[Slot::route] = numbers({0, 1, 1, 0, 0, 1});
      RoutingRule rule;
      rule.experts = 4;
      rule.top_k = 2;
      rule.before_experts = before;
      flow[Slot::sent] = count_choices(flow[Slot::route], rule.experts);
      Arrival arrival;
      CellContext context;
      context.exchange = &exchange;
      context.arrival = &arrival;
      send_tokens_once(flow, context, rule);
      take_tokens(flow, context, rule);
      send_sums(flow, context, before);
      take_sums(flow, context);
      EXPECT_TRUE(flow[Slot::h].allclose(values * scores.sum(1, true)));
      kernels::run_backward({flow[Slot::h].sum()}, {at::ones({}, at::kDouble)});
      EXPECT_TRUE(scores.grad().allclose(values.sum(1, true).expand({3, 2})));
      EXPECT_TRUE(values.grad().allclose(scores.sum(1, true).expand({3, 5})));
    }
}

TEST(TokensOnce, FillFreeRowsThatNobodyReads) {
  const Loop narrow({.choices = 1, .tokens = 3});
  Flow flow = sent(narrow, numbers({1, 0, 0, 1}));
  EXPECT_EQ(narrow.misfits, 1) << "four choices arrive where two fit";
  const Loop exchange({.choices = 3, .tokens = 3});
  flow = sent(exchange, numbers({1, 0, 0, 1}));
  EXPECT_EQ(exchange.misfits, 0);
  EXPECT_EQ(flow[Slot::m].size(0), 6);
  EXPECT_TRUE(at::equal(flow[Slot::m].narrow(0, 0, 4), column({0, 1, 0, 1})));
  EXPECT_TRUE(at::equal(flow[Slot::route].narrow(0, 2, 4), at::full({4, 2}, -1, at::kLong)));
}

TEST(TokensOnce, NoteRanksThatGetTooMany) {
  const at::Tensor chosen = numbers({0, 1, 0, 2, 1, 3});
  const Loop few_tokens({.choices = 4, .tokens = 2});
  sent(few_tokens, chosen);
  EXPECT_EQ(few_tokens.misfits, 1) << "three tokens for the first rank";
}

/// One choice more than there are tokens, as sizes that are rounded up may ask for.
TEST(TokensOnce, HaveNoMoreRowsThanChoicesArrive) {
  const Loop exchange({.choices = 4, .tokens = 3});
  Flow flow = sent(exchange, at::tensor({0, 1, 0}, at::kLong).view({3, 1}));
  EXPECT_EQ(flow[Slot::m].size(0), 6);
}

}  // namespace
}  // namespace tessera::model
