// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/expert_rows.hpp"

#include <gtest/gtest.h>

namespace tessera::plan {
namespace {

TEST(ExpertCapacity, IsAMultipleOfAnEvenShare) {
  EXPECT_EQ(rows_for_each_rank(1, {.tokens = 100, .top_k = 8, .experts = 128, .ranks = 8}), 100);
  EXPECT_EQ(rows_for_each_rank(1.5, {.tokens = 100, .top_k = 8, .experts = 128, .ranks = 8}), 150);
}

TEST(ExpertCapacity, IsRoundedUp) {
  EXPECT_EQ(rows_for_each_rank(1, {.tokens = 5, .top_k = 3, .experts = 8, .ranks = 4}), 4);
}

TEST(ExpertCapacity, NeedNotBeMoreThanCanBeChosen) {
  EXPECT_EQ(rows_for_each_rank(9, {.tokens = 100, .top_k = 8, .experts = 16, .ranks = 8}), 200);
  EXPECT_EQ(rows_for_each_rank(9, {.tokens = 100, .top_k = 2, .experts = 16, .ranks = 2}), 200);
}

/// Of the 6 pairs of 4 experts, 2 are on one of the 2 ranks.
TEST(TokensOnce, ReachRanksOnAverage) {
  EXPECT_NEAR(ranks_of_token({.top_k = 2, .experts = 4, .ranks = 2}), (2 * 1 + 4 * 2) / 6.0, 1e-12);
  EXPECT_NEAR(ranks_of_token({.top_k = 1, .experts = 128, .ranks = 8}), 1, 1e-12);
  EXPECT_NEAR(ranks_of_token({.top_k = 8, .experts = 8, .ranks = 4}), 4, 1e-12);
}

TEST(TokensOnce, AreAMultipleOfWhatReachesARankOnAverage) {
  EXPECT_EQ(tokens_for_each_rank(1, {.tokens = 100, .top_k = 8, .experts = 128, .ranks = 8}), 67);
  EXPECT_EQ(tokens_for_each_rank(1.25, {.tokens = 100, .top_k = 8, .experts = 128, .ranks = 8}),
            84);
}

TEST(TokensOnce, NeedNotBeMoreThanThereAre) {
  EXPECT_EQ(tokens_for_each_rank(2, {.tokens = 100, .top_k = 8, .experts = 16, .ranks = 8}), 100);
  EXPECT_EQ(tokens_for_each_rank(1, {.tokens = 100, .top_k = 1, .experts = 16, .ranks = 4}), 25);
}

}  // namespace
}  // namespace tessera::plan
