// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/late_ranks.hpp"

#include <gtest/gtest.h>

namespace tessera::metrics {
namespace {

TEST(LateRanks, NamesTheOneThatIsLateInMostSteps) {
  LateRanks ranks;
  for (int step = 0; step < 94; ++step) ranks.step(12, 0.038, 0.5);
  for (int step = 0; step < 6; ++step) ranks.step(3, 0.2, 0.5);
  EXPECT_EQ(ranks.note(), "  note: rank 12 arrives 38 ms late in 94 % of steps\n");
}

TEST(LateRanks, NamesNobodyWhereTheyTakeTurns) {
  LateRanks ranks;
  for (int step = 0; step < 100; ++step) ranks.step(step % 2, 0.1, 0.5);
  EXPECT_EQ(ranks.note(), "");
}

TEST(LateRanks, NamesNobodyForLittle) {
  LateRanks ranks, fast, few;
  for (int step = 0; step < 10; ++step) ranks.step(1, 0.0099, 0.5), fast.step(1, 0.0009, 0.001);
  for (int step = 0; step < 4; ++step) few.step(1, 0.4, 0.5);
  EXPECT_EQ(ranks.note() + fast.note() + few.note(), "");
}

}  // namespace
}  // namespace tessera::metrics
