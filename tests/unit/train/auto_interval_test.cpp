#include "tessera/train/auto_interval.hpp"

#include <gtest/gtest.h>

namespace tessera::train {
namespace {

checkpoint::SaveResult took(double seconds, double blocked) {
  checkpoint::SaveResult result;
  result.seconds = seconds;
  result.blocked_seconds = blocked;
  return result;
}

TEST(AutoInterval, IsYoungsOfTheMeasuredCost) {
  AutoInterval interval(7200, 100);
  EXPECT_DOUBLE_EQ(interval.seconds(), 120);  // of the second that is assumed at first
  EXPECT_FALSE(interval.is_due(219));
  EXPECT_TRUE(interval.is_due(220));
  interval.begun(230);
  EXPECT_FALSE(interval.is_due(340)) << "a save that goes on asks for no other one";
  interval.measured(took(4, 4));
  EXPECT_DOUBLE_EQ(interval.seconds(), 240);
  EXPECT_FALSE(interval.is_due(469));
  EXPECT_TRUE(interval.is_due(470));
}

TEST(AutoInterval, CostsWhatTrainingWasHeldForAndIsNoShorterThanASave) {
  AutoInterval interval(7200, 0);
  interval.measured(took(30, 0.25));
  EXPECT_DOUBLE_EQ(interval.seconds(), 60);
  interval.measured(took(90, 0.25));
  EXPECT_DOUBLE_EQ(interval.seconds(), 90);
}

}  // namespace
}  // namespace tessera::train
