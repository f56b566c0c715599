// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/exchange_attempts.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::train {
namespace {

/// Steps that were tried out of `steps`, of which those before `fits_from` do not fit.
std::vector<int> tried(int steps, int fits_from) {
  ExchangeAttempts attempts;
  std::vector<int> which;
  for (int step = 0; step < steps; ++step) {
    if (!attempts.fixed_now()) continue;
    which.push_back(step);
    if (step < fits_from)
      attempts.did_not_fit();
    else
      attempts.fitted();
  }
  return which;
}

TEST(ExchangeAttempts, AreMadeInEachStepThatFits) {
  EXPECT_EQ(tried(4, 0), (std::vector<int>{0, 1, 2, 3}));
}

TEST(ExchangeAttempts, WaitLongerAndLonger) {
  EXPECT_EQ(tried(17, 17), (std::vector<int>{0, 2, 5, 10}));
  EXPECT_EQ(tried(12, 5), (std::vector<int>{0, 2, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(ExchangeAttempts, AreNeverGivenUp) {
  ExchangeAttempts attempts;
  int steps = 0;
  for (int i = 0; i < 20; ++i) steps = attempts.did_not_fit();
  EXPECT_EQ(steps, ExchangeAttempts::kMostSteps);
  attempts.fitted();
  EXPECT_EQ(attempts.did_not_fit(), 1);
}

}  // namespace
}  // namespace tessera::train
