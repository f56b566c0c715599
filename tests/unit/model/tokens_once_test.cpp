// SPDX-License-Identifier: Apache-2.0
#include "tokens_once.hpp"

#include <gtest/gtest.h>

namespace tessera::model {
namespace {

/// The first of two ranks, which gets what it sends.
class Loop : public TokenExchange {
 public:
  explicit Loop(FixedRows fixed = {}) : fixed_(fixed) {}
  std::int64_t ranks() const override { return 2; }
  bool has_free_rows() const override { return fixed_.choices > 0; }
  bool sends_once() const override { return true; }
  FixedRows fixed_rows(const ChoiceCounts& /*of*/) const override { return fixed_; }
  void expect_fit(const at::Tensor& counts, std::int64_t most) const override {
    misfits += counts.gt(most).sum().item<std::int64_t>();
  }
  at::Tensor counts(const at::Tensor& sent, std::int64_t /*rows*/) const override {
    return sent.view({2, -1});
  }
  at::Tensor to_experts(const at::Tensor& rows, const at::Tensor& /*sent*/,
                        const at::Tensor& /*received*/) const override {
    messages.push_back(rows);
    return rows;
  }

  mutable std::int64_t misfits = 0;
  mutable std::vector<at::Tensor> messages;

 private:
  FixedRows fixed_;
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
  flow[Slot::scores] = 10 * token + at::arange(chosen.size(1), at::kDouble);
  CellContext context;
  context.exchange = &exchange;
  send_tokens_once(flow, context, rule);
  return flow;
}

at::Tensor column(std::vector<double> values) {
  return at::tensor(values, at::kDouble).unsqueeze(1);
}

TEST(TokensOnce, TravelToEachRankOfTheirExperts) {
  const Loop exchange;
  Flow flow = sent(exchange, at::tensor({0, 1, 0, 2, 3, 2}, at::kLong).view({3, 2}));
  EXPECT_TRUE(at::equal(exchange.messages[1], column({0, 1, 1, 2})));
  EXPECT_TRUE(
      at::equal(flow[Slot::home], at::tensor({0, -1, 1, 2, 3, -1}, at::kLong).view({3, 2})));
  EXPECT_TRUE(at::equal(exchange.messages[0].narrow(1, 0, 2),
                        at::tensor({0., 1., 10., 11., 10., 11., 20., 21.}).view({4, 2})));
}

/// Here are experts 0 and 1: what other ranks hold is left to them.
TEST(TokensOnce, LieExpertByExpert) {
  const Loop exchange;
  Flow flow = sent(exchange, at::tensor({1, 0, 0, 1}, at::kLong).view({2, 2}));
  EXPECT_TRUE(at::equal(flow[Slot::m], column({0, 1, 0, 1})));
  EXPECT_TRUE(at::equal(flow[Slot::received], at::tensor({2, 2}, at::kLong).view({1, 2})));
  EXPECT_TRUE(at::equal(flow[Slot::route], at::tensor({2, 0, 1, 3}, at::kLong).view({2, 2})));
}

TEST(TokensOnce, FillFreeRowsThatNobodyReads) {
  const Loop exchange({.choices = 3, .tokens = 3});
  Flow flow = sent(exchange, at::tensor({1, 0, 0, 1}, at::kLong).view({2, 2}));
  EXPECT_EQ(exchange.misfits, 1) << "four choices of one rank";
  const Loop roomy({.choices = 4, .tokens = 3});
  flow = sent(roomy, at::tensor({1, 0, 0, 1}, at::kLong).view({2, 2}));
  EXPECT_EQ(roomy.misfits, 0);
  EXPECT_EQ(flow[Slot::m].size(0), 8);
  EXPECT_TRUE(at::equal(flow[Slot::m].narrow(0, 0, 4), column({0, 1, 0, 1})));
  EXPECT_TRUE(at::equal(flow[Slot::route].narrow(0, 2, 4), at::full({4, 2}, -1, at::kLong)));
}

TEST(TokensOnce, NoteRanksThatGetTooMany) {
  const at::Tensor chosen = at::tensor({0, 1, 0, 2, 1, 3}, at::kLong).view({3, 2});
  const Loop few_tokens({.choices = 4, .tokens = 2});
  sent(few_tokens, chosen);
  EXPECT_EQ(few_tokens.misfits, 1) << "three tokens for the first rank";
  const Loop few_choices({.choices = 3, .tokens = 3});
  sent(few_choices, chosen);
  EXPECT_EQ(few_choices.misfits, 1) << "four choices of its experts";
}

}  // namespace
}  // namespace tessera::model
