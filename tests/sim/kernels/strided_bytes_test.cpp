// SPDX-License-Identifier: Apache-2.0
#include "strided_bytes.hpp"

#include <gtest/gtest.h>

#include "accesses.hpp"

namespace tessera::sim {
namespace {

std::vector<Access> accesses(std::size_t bytes, std::vector<Repeat> repeats) {
  std::vector<Access> list;
  static std::byte memory[1 << 20];
  add_accesses(list, memory, bytes, std::move(repeats), true);
  for (Access& access : list)
    access.data =
        reinterpret_cast<const void*>(static_cast<const std::byte*>(access.data) - memory);
  return list;
}
std::size_t begin(const Access& access) { return reinterpret_cast<std::size_t>(access.data); }

TEST(StridedBytes, NeighboursAreOneAccess) {
  const auto list = accesses(4, {{6, 20}, {5, 4}});
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].bytes, 120U);
  EXPECT_TRUE(list[0].writes);
}

TEST(StridedBytes, GapsAreLeftOut) {
  const auto list = accesses(4, {{3, 20}, {2, 4}});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(begin(list[1]), 20U);
  EXPECT_EQ(list[1].bytes, 8U);
}

TEST(StridedBytes, RepeatedPlacesCountOnce) {
  EXPECT_EQ(accesses(4, {{7, 0}}).size(), 1U);
  EXPECT_TRUE(accesses(4, {{0, 4}, {3, 8}}).empty());
}

TEST(StridedBytes, ManyPiecesAreCoveredWithTheirGaps) {
  const auto list = accesses(4, {{5000, 16}, {2, 100000}});
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].bytes, 4999 * 16 + 4U);
  EXPECT_EQ(begin(list[1]), 100000U);
}

TEST(Covers, RowsAndNothingBetween) {
  static const std::byte memory[1000] = {};
  const Operand operand{memory, 8, 3, 20};
  EXPECT_TRUE(covers(operand, memory + 24, 4));
  EXPECT_FALSE(covers(operand, memory + 8, 1));
  EXPECT_FALSE(covers(operand, memory + 46, 4));
  EXPECT_FALSE(covers(operand, memory + 60, 4));
  EXPECT_FALSE(covers(operand, memory - 4, 4));
}

TEST(Covers, GroupsInEitherOrderOfStrides) {
  static const std::byte memory[1000] = {};
  const Operand groups_outside{memory, 8, 3, 20, 2, 100}, groups_inside{memory, 8, 2, 100, 3, 20};
  for (const Operand& operand : {groups_outside, groups_inside}) {
    EXPECT_TRUE(covers(operand, memory + 144, 4));
    EXPECT_FALSE(covers(operand, memory + 160, 4));
    EXPECT_FALSE(covers(operand, memory + 92, 1));
  }
}

}  // namespace
}  // namespace tessera::sim
