// SPDX-License-Identifier: Apache-2.0
#include "two_part_fit.hpp"

#include <gtest/gtest.h>

namespace tessera::app {
namespace {

std::vector<TimedWork> repeated(const std::vector<TimedWork>& works, int times) {
  std::vector<TimedWork> out;
  for (int i = 0; i < times; ++i) out.insert(out.end(), works.begin(), works.end());
  return out;
}

TEST(TwoPartFit, FindsTheRatesOfExactTimes) {
  std::vector<TimedWork> works;
  for (const auto& [first, second] : {std::pair{1e9, 1e6}, {2e9, 8e7}, {5e8, 4e7}})
    works.push_back({first, second, first / 100e9 + second / 5e9});
  const TwoRates rates = fit_two_rates(works, {100e9, 5e9});
  EXPECT_NEAR(rates.first, 100e9, 1);
  EXPECT_NEAR(rates.second, 5e9, 1);
  const std::vector<TimedWork> many = repeated(works, 4);
  const TwoRates others = fit_two_rates(many, {200e9, 10e9});
  EXPECT_NEAR(others.first / 100e9, 1, 0.05) << "works count more than what is usual";
  EXPECT_NEAR(others.second / 5e9, 1, 0.15);
}

TEST(TwoPartFit, WhatIsUsualTellsPartsFromEachOtherWhereWorksDoNot) {
  const std::vector<TimedWork> works(8, {100, 10, 2});  // of a second each, or in any other way
  const TwoRates rates = fit_two_rates(works, {100, 10});
  EXPECT_NEAR(rates.first, 100, 1e-9);
  EXPECT_NEAR(rates.second, 10, 1e-9);
  const TwoRates slower = fit_two_rates(works, {200, 20});
  EXPECT_NEAR(100 / slower.first + 10 / slower.second, 2, 0.02);
  EXPECT_NEAR(slower.first / slower.second, 10, 1e-9);
}

TEST(TwoPartFit, NoPartTakesNegativeTime) {
  // The more of the second, the faster.
  const TwoRates rates = fit_two_rates({{100, 1, 1.2}, {100, 50, 0.5}}, {100, 1000});
  EXPECT_DOUBLE_EQ(rates.second, 1e15);
  EXPECT_GT(rates.first, 100 / 1.2);
  EXPECT_LT(rates.first, 100 / 0.5);
}

TEST(TwoPartFit, OneTimeGivesTheFirstRate) {
  const TwoRates rates = fit_two_rates({{100, 3, 2}}, {50, 1e9});
  EXPECT_NEAR(rates.first, 50, 1e-3);
}

}  // namespace
}  // namespace tessera::app
