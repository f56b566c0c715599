// SPDX-License-Identifier: Apache-2.0
#include "two_part_fit.hpp"

#include <gtest/gtest.h>

namespace tessera::app {
namespace {

TEST(TwoPartFit, FindsTheRatesOfExactTimes) {
  std::vector<TimedWork> works;
  for (const auto& [first, second] : {std::pair{1e9, 1e6}, {2e9, 8e6}, {5e8, 4e6}})
    works.push_back({first, second, first / 100e9 + second / 5e9});
  const TwoRates rates = fit_two_rates(works);
  EXPECT_NEAR(rates.first, 100e9, 1);
  EXPECT_NEAR(rates.second, 5e9, 1);
}

TEST(TwoPartFit, NoPartTakesNegativeTime) {
  // The more of the second, the faster.
  const TwoRates rates = fit_two_rates({{100, 1, 1.2}, {100, 50, 0.8}});
  EXPECT_DOUBLE_EQ(rates.second, 1e15);
  EXPECT_GT(rates.first, 80);
  EXPECT_LT(rates.first, 125);
}

TEST(TwoPartFit, OneTimeGivesTheFirstRate) {
  const TwoRates rates = fit_two_rates({{100, 3, 2}});
  EXPECT_NEAR(rates.first, 50, 1e-9);
  EXPECT_DOUBLE_EQ(rates.second, 1e15);
}

}  // namespace
}  // namespace tessera::app
