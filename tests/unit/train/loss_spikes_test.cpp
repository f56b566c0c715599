// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/loss_spikes.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::train {
namespace {

/// Of a run that numbers its steps.
class Scores {
 public:
  double of(double loss) { return spikes_.score(++step_, loss); }
  void jump_back(std::int64_t steps) { spikes_.forget_after(step_ -= steps); }

 private:
  LossSpikes spikes_;
  std::int64_t step_ = 0;
};

TEST(LossSpikes, CountsInStandardDeviationsOfTheLossesBefore) {
  Scores scores;
  for (int i = 0; i < 100; ++i) EXPECT_LT(std::abs(scores.of(i % 2 ? 3.9 : 4.1)), 1.1) << i;
  EXPECT_NEAR(scores.of(5.0), 1.0 / (0.1 * std::sqrt(100.0 / 99.0)), 1e-9);
  EXPECT_LT(scores.of(3.0), -5);
}

TEST(LossSpikes, SaysNothingOfFewOrEqualLosses) {
  Scores scores;
  for (std::size_t i = 0; i < LossSpikes::kLeast; ++i)
    EXPECT_EQ(scores.of(static_cast<double>(i)), 0);
  EXPECT_NE(scores.of(100), 0);
  Scores equal;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(equal.of(2.0), 0);
}

/// A second spike soon after is as unlike the losses before it.
TEST(LossSpikes, KeepsWhatWasBeforeAJumpBack) {
  Scores scores;
  for (int i = 0; i < 30; ++i) scores.of(i % 2 ? 3.9 : 4.1);
  const double first = scores.of(50.0);
  EXPECT_GT(first, 100);
  scores.jump_back(1);
  EXPECT_EQ(scores.of(50.0), first);
  scores.jump_back(20);
  EXPECT_EQ(scores.of(50.0), 0) << "11 losses are too few";
}

TEST(LossSpikes, ForgetsWhatIsLongAgo) {
  Scores scores;
  for (int i = 0; i < 20; ++i) scores.of(100.0 + i % 2);
  for (std::size_t i = 0; i < LossSpikes::kWindow; ++i) scores.of(i % 2 ? 1.0 : 1.1);
  EXPECT_GT(scores.of(2.0), 10);
}

}  // namespace
}  // namespace tessera::train
