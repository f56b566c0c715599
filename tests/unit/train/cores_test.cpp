// SPDX-License-Identifier: Apache-2.0
// A rank's share of its node's cores.
#include "tessera/train/cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>

namespace tessera::train {
namespace {

const std::string kFirstFour("\x0f", 1), kLastFour("\xf0", 1), kAll("\xff", 1);

TEST(Cores, RanksThatMayRunAnywhereShareEvenly) {
  EXPECT_EQ(share_of_cores({kAll}, 0), 8);
  EXPECT_EQ(share_of_cores({kAll, kAll, kAll}, 1), 2);  // 8 / 3
}

TEST(Cores, BoundRanksHaveTheirOwn) {
  EXPECT_EQ(share_of_cores({kFirstFour, kLastFour}, 0), 4);
  EXPECT_EQ(share_of_cores({kFirstFour, kLastFour, kLastFour}, 2), 2);
  EXPECT_EQ(share_of_cores({kFirstFour, kAll}, 1),
            6);  // four alone, and half of the four that it shares
}

TEST(Cores, EachRankHasOneAtLeast) {
  EXPECT_EQ(share_of_cores(std::vector<std::string>(9, kAll), 4), 1);
  EXPECT_EQ(share_of_cores({""}, 0), 1);  // the system did not tell
}

TEST(Cores, ReadsTheQuotaOfAContainer) {
  EXPECT_DOUBLE_EQ(cores_of_quota("150000 100000").value(), 1.5);
  for (const char* none : {"max 100000", "", "0 100000", "5", "5 0", "-5 100"})
    EXPECT_FALSE(cores_of_quota(none)) << none;
}

TEST(Cores, KnowsTheCoresOfThisProcess) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(share_of_cores({allowed_cores()}, 0), CPU_COUNT(&set));
}

}  // namespace
}  // namespace tessera::train
