// SPDX-License-Identifier: Apache-2.0
#include "two_part_fit.hpp"

#include <gtest/gtest.h>

namespace tessera::app {
namespace {

std::vector<TimedWork> works_of(const std::vector<std::pair<double, double>>& amounts) {
  std::vector<TimedWork> works;
  for (const auto& [first, second] : amounts)
    works.push_back({first, second, first / 100e9 + second / 5e9});
  return works;
}

TEST(TwoPartFit, FindsTheRatesOfExactTimes) {
  const TwoRates rates =
      fit_two_rates(works_of({{1e9, 1e6}, {2e9, 8e6}, {5e8, 4e6}}), {100e9, 5e9});
  EXPECT_NEAR(rates.first, 100e9, 1);
  EXPECT_NEAR(rates.second, 5e9, 1);
}

TEST(TwoPartFit, WorksCountMoreThanWhatIsUsual) {
  std::vector<TimedWork> works;
  for (int i = 0; i < 4; ++i)
    for (const TimedWork& work : works_of({{1e9, 1e6}, {2e9, 8e7}, {5e8, 4e7}}))
      works.push_back(work);
  const TwoRates rates = fit_two_rates(works, {200e9, 10e9});
  EXPECT_NEAR(rates.first / 100e9, 1, 0.05);
  EXPECT_NEAR(rates.second / 5e9, 1, 0.15);
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
  const TwoRates rates = fit_two_rates({{100, 1, 1.2}, {100, 50, 0.8}}, {100, 10});
  EXPECT_DOUBLE_EQ(rates.second, 1e15);
  EXPECT_GT(rates.first, 80);
  EXPECT_LT(rates.first, 125);
}

TEST(TwoPartFit, OneTimeGivesTheFirstRate) {
  const TwoRates rates = fit_two_rates({{100, 3, 2}}, {50, 1e15});
  EXPECT_NEAR(rates.first, 50, 1e-9);
  EXPECT_DOUBLE_EQ(rates.second, 1e15);
}

}  // namespace
}  // namespace tessera::app
