// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/loss_spikes.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::train {
namespace {

TEST(LossSpikes, CountsInStandardDeviationsOfTheLossesBefore) {
  LossSpikes spikes;
  for (int i = 0; i < 100; ++i) EXPECT_LT(std::abs(spikes.score(i % 2 ? 3.9 : 4.1)), 1.1) << i;
  EXPECT_NEAR(spikes.score(5.0), 1.0 / (0.1 * std::sqrt(100.0 / 99.0)), 1e-9);
  EXPECT_LT(spikes.score(3.0), -5);
}

TEST(LossSpikes, SaysNothingOfFewOrEqualLosses) {
  LossSpikes spikes;
  for (std::size_t i = 0; i < LossSpikes::kLeast; ++i)
    EXPECT_EQ(spikes.score(static_cast<double>(i)), 0);
  EXPECT_NE(spikes.score(100), 0);
  spikes.forget();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(spikes.score(2.0), 0);
}

TEST(LossSpikes, ForgetsWhatIsLongAgo) {
  LossSpikes spikes;
  for (int i = 0; i < 20; ++i) spikes.score(100.0 + i % 2);
  for (std::size_t i = 0; i < LossSpikes::kWindow; ++i) spikes.score(i % 2 ? 1.0 : 1.1);
  EXPECT_GT(spikes.score(2.0), 10);
}

}  // namespace
}  // namespace tessera::train
