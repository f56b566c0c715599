// SPDX-License-Identifier: Apache-2.0
#include "fibers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tessera::sim {
namespace {

TEST(Fibers, TakeTurnsInOrder) {
  Fibers fibers;
  std::vector<int> seen;
  const auto entry = [&](int i) {
    seen.push_back(i);
    fibers.pause();
    seen.push_back(10 + i);
  };
  EXPECT_TRUE(fibers.run(3, entry, [] { return false; }));
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 10, 11, 12}));
}

/// More values alive over a pause than the registers that a call may change.
TEST(Fibers, KeepLocalValues) {
  Fibers fibers;
  double sums[64] = {};
  const auto entry = [&](int i) {
    double values[24];
    for (int k = 0; k < 24; ++k) values[k] = std::sqrt(i * 24.0 + k);
    for (int round = 0; round < 5; ++round) {
      fibers.pause();
      for (double& v : values) v += round;
    }
    for (const double v : values) sums[i] += v;
  };
  EXPECT_TRUE(fibers.run(64, entry, [] { return false; }));
  for (int i = 0; i < 64; ++i) {
    double expected = 0;
    for (int k = 0; k < 24; ++k) expected += std::sqrt(i * 24.0 + k) + 10;
    EXPECT_NEAR(sums[i], expected, 1e-9);
  }
}

TEST(Fibers, AreForgottenWhenStuck) {
  Fibers fibers;
  int rounds = 0;
  const auto forever = [&](int) {
    for (;;) fibers.pause();
  };
  EXPECT_FALSE(fibers.run(2, forever, [&] { return ++rounds == 3; }));
  bool ran = false;
  EXPECT_TRUE(fibers.run(
      1, [&](int) { ran = true; }, [] { return false; }));
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace tessera::sim
