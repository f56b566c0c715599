// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/failures.hpp"

#include <gtest/gtest.h>

namespace tessera::plan {
namespace {

TEST(Failures, ComeMoreOftenToMoreRanks) {
  EXPECT_NEAR(usual_seconds_between_failures(16'384) / 3600, 54.0 * 24 / 419, 0.1);
}

TEST(Failures, YoungsIntervalGrowsWithTheCostOfASave) {
  EXPECT_DOUBLE_EQ(young_interval(0.4, 200'000), 400);
  EXPECT_DOUBLE_EQ(young_interval(1.6, 200'000), 800);
}

}  // namespace
}  // namespace tessera::plan
