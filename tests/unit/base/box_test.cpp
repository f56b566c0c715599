// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/box.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tessera {
namespace {

/// Row-major number of a global position in a box.
std::int64_t number_in(const Box& box, const Shape& at) {
  std::int64_t number = 0;
  for (std::size_t d = 0; d < at.size(); ++d)
    number = number * box.extent[d] + at[d] - box.offset[d];
  return number;
}

/// source number -> target number, position by position.
std::map<std::int64_t, std::int64_t> slow_pairs(const Box& overlap, const Box& source,
                                                const Box& target) {
  std::map<std::int64_t, std::int64_t> pairs;
  for (std::int64_t n = 0; n < element_count(overlap.extent); ++n) {
    Shape at(overlap.offset.size());
    std::int64_t rest = n;
    for (std::size_t d = at.size(); d-- > 0; rest /= overlap.extent[d])
      at[d] = overlap.offset[d] + rest % overlap.extent[d];
    pairs[number_in(source, at)] = number_in(target, at);
  }
  return pairs;
}

Box random_box(std::mt19937& random, const Shape& shape) {
  Box box;
  for (const std::int64_t n : shape) {
    box.offset.push_back(static_cast<std::int64_t>(random() % static_cast<unsigned>(n)));
    box.extent.push_back(
        1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(n - box.offset.back())));
  }
  return box;
}

TEST(Box, CursorVisitsTheOverlapAsTheSlowTwinDoes) {
  std::mt19937 random(7);
  int overlaps = 0;
  for (int round = 0; round < 600; ++round) {
    const Shape shape = round % 3 == 0 ? Shape{9} : round % 3 == 1 ? Shape{5, 7} : Shape{4, 3, 6};
    const Box source = random_box(random, shape), target = random_box(random, shape);
    const auto overlap = intersect(source, target);
    if (!overlap) continue;
    ++overlaps;
    std::map<std::int64_t, std::int64_t> pairs;
    std::int64_t previous = -1, last = -1;
    RunCursor cursor(*overlap, source, target);
    while (!cursor.done()) {
      const std::int64_t step =
          1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(cursor.length()));
      ASSERT_GT(cursor.source(), previous);
      for (std::int64_t i = 0; i < step; ++i) pairs[cursor.source() + i] = cursor.target() + i;
      previous = cursor.source();
      last = cursor.source() + step;
      cursor.advance(step);
    }
    EXPECT_EQ(pairs, slow_pairs(*overlap, source, target));
    EXPECT_EQ(last, cursor.source_end());
  }
  EXPECT_GT(overlaps, 200);
}

TEST(Box, WholeTensorIsOneRun) {
  const Shape shape{4, 3, 6};
  EXPECT_EQ(RunCursor(whole(shape), whole(shape), whole(shape)).length(), 72);
  const Box rows{{1, 0, 0}, {2, 3, 6}};
  EXPECT_EQ(RunCursor(rows, whole(shape), rows).length(), 36);
}

TEST(Box, ScalarsAndEmptyBoxes) {
  EXPECT_TRUE(intersect({}, {}));
  RunCursor cursor({}, {}, {});
  EXPECT_EQ(cursor.length(), 1);
  cursor.advance(1);
  EXPECT_TRUE(cursor.done());
  EXPECT_FALSE(intersect({{2}, {0}}, {{0}, {9}}));
}

TEST(Box, SizesFromFilesCannotOverflow) {
  EXPECT_EQ(checked_bytes({3, 4}, DType::bf16), 24);
  EXPECT_EQ(checked_bytes({}, DType::f64), 8);
  EXPECT_EQ(checked_bytes({0, 5}, DType::f64), 0);
  EXPECT_FALSE(checked_bytes({std::int64_t{1} << 61}, DType::f64));
  EXPECT_FALSE(checked_bytes({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, DType::u8));
  EXPECT_FALSE(checked_bytes({-1}, DType::u8));
  EXPECT_FALSE(lies_in({{1}, {std::int64_t{1} << 62}}, {4}));
  EXPECT_FALSE(lies_in({{0, 0}, {1, 1}}, {4}));
  EXPECT_TRUE(lies_in({{4}, {0}}, {4}));
}

}  // namespace
}  // namespace tessera
