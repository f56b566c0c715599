// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/expert_capacity.hpp"

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

}  // namespace
}  // namespace tessera::plan
