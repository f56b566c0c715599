// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/meter.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::metrics {
namespace {

TEST(Window, MedianOfTheLastValuesOnly) {
  Window window(3);
  EXPECT_TRUE(std::isnan(window.median()));
  window.add(100);
  EXPECT_DOUBLE_EQ(window.median(), 100);
  window.add(1);
  EXPECT_DOUBLE_EQ(window.median(), 50.5);
  window.add(2);
  window.add(3);
  EXPECT_EQ(window.size(), 3U);
  EXPECT_DOUBLE_EQ(window.median(), 2) << "100 has left the window";
}

TEST(StepMeter, OneSlowStepDoesNotMoveTheEta) {
  StepMeter meter;
  EXPECT_TRUE(std::isnan(meter.eta_seconds(10)));
  for (int i = 0; i < 9; ++i) meter.add(1000, 0.5);
  meter.add(1000, 60);
  EXPECT_DOUBLE_EQ(meter.eta_seconds(10), 5);
  EXPECT_DOUBLE_EQ(meter.eta_seconds(-3), 0);
  EXPECT_EQ(meter.total_tokens(), 10'000);
  EXPECT_DOUBLE_EQ(meter.total_seconds(), 64.5);
}

struct PhaseTimerTest : testing::Test {
  double now = 100;
  PhaseTimer timer{[this] { return now; }};
};

TEST_F(PhaseTimerTest, InnerTimeCountsOnce) {
  now += 1;  // other
  {
    const auto backward = timer.time(Phase::backward);
    now += 2;
    {
      const auto communication = timer.time(Phase::communication);
      now += 4;
    }
    now += 8;
    EXPECT_DOUBLE_EQ(timer.seconds(Phase::backward), 10) << "with what runs now";
  }
  now += 16;  // other again
  EXPECT_DOUBLE_EQ(timer.seconds(Phase::backward), 10);
  EXPECT_DOUBLE_EQ(timer.seconds(Phase::communication), 4);
  EXPECT_DOUBLE_EQ(timer.seconds(Phase::other), 17);
  EXPECT_DOUBLE_EQ(timer.seconds(Phase::forward), 0);
}

TEST_F(PhaseTimerTest, ResetKeepsOpenScopes) {
  const auto checkpoint = timer.time(Phase::checkpoint);
  now += 3;
  timer.reset();
  now += 5;
  EXPECT_DOUBLE_EQ(timer.seconds(Phase::checkpoint), 5);
  EXPECT_DOUBLE_EQ(timer.seconds(Phase::other), 0);
}

TEST(PhaseTimer, UsesAClockThatRises) {
  const double before = monotonic_seconds();
  PhaseTimer timer;
  { const auto data = timer.time(Phase::data); }
  EXPECT_GE(timer.seconds(Phase::data), 0);
  EXPECT_GE(monotonic_seconds(), before);
}

TEST(PhaseTimer, LeavesOutTheTimeOfWaiting) {
  double now = 0, waited = 0;
  PhaseTimer timer([&] { return now; }, [&] { return waited; });
  {
    const auto forward = timer.time(Phase::forward);
    now = 5, waited = 2;
    const auto backward = timer.time(Phase::backward);
    now = 6, waited = 3;
  }
  EXPECT_EQ(timer.seconds(Phase::forward), 3);
  EXPECT_EQ(timer.seconds(Phase::backward), 0);
}

TEST(Phase, NamesAreThoseOfTheMetrics) {
  EXPECT_EQ(name_of(Phase::data), "data");
  EXPECT_EQ(name_of(Phase::communication), "communication");
  EXPECT_EQ(name_of(Phase::other), "other");
}

}  // namespace
}  // namespace tessera::metrics
