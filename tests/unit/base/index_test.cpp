// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/index.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include "tessera/base/indexed_vector.hpp"

namespace tessera {
namespace {

using Cat = Index<struct CatKind>;
using Dog = Index<struct DogKind>;

template <class Container, class I>
concept Takes = requires(Container& container, I index) {
  container[index];
};

static_assert(!std::is_convertible_v<int, Cat> && !std::is_convertible_v<Cat, int>);
static_assert(!std::is_constructible_v<Cat, Dog> && !std::is_assignable_v<Cat&, Dog>);
static_assert(!std::equality_comparable_with<Cat, Dog> && !std::equality_comparable_with<Cat, int>);
static_assert(Takes<IndexedVector<Cat, double>, Cat> && !Takes<IndexedVector<Cat, double>, Dog> &&
              !Takes<IndexedVector<Cat, double>, int>);
static_assert(sizeof(Cat) == sizeof(int) && std::is_trivially_copyable_v<Cat>);

TEST(Index, CountsAndCompares) {
  Cat cat(3);
  EXPECT_EQ(++cat, Cat(4));
  EXPECT_EQ(cat - 5, Cat(-1));
  EXPECT_LT(cat, cat + 1);
  EXPECT_EQ(cat.position(), 4u);
  EXPECT_EQ(fmt::format("{} of {}", cat, 9), "4 of 9");
}

TEST(Index, RangesHaveEachOnce) {
  std::vector<Cat> cats;
  for (const Cat cat : IndexRange<Cat>(3)) cats.push_back(cat);
  EXPECT_EQ(cats, (std::vector{Cat(0), Cat(1), Cat(2)}));
  for (const Cat cat : IndexRange<Cat>(0)) FAIL() << cat.value();
}

TEST(IndexedVector, IsReachedByItsIndex) {
  IndexedVector<Cat, double> weights(2, 4.5);
  weights.push_back(6);
  weights[Cat(0)] = 1;
  EXPECT_EQ(weights, (IndexedVector<Cat, double>{1, 4.5, 6}));
  double sum = 0;
  for (const Cat cat : weights.indexes()) sum += weights[cat];
  EXPECT_EQ(sum, 11.5);
  EXPECT_EQ(weights.size(), 3);
}

}  // namespace
}  // namespace tessera
