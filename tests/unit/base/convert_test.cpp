// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace tessera {
namespace {

/// The representable neighbour nearest to `value`, ties to even, found by trying every pattern.
std::uint16_t nearest_by_search(double value, float (*widen)(std::uint16_t)) {
  std::uint16_t best = 0;
  double best_distance = INFINITY;
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    const double candidate = widen(static_cast<std::uint16_t>(bits));
    if (!std::isfinite(candidate) || std::signbit(candidate) != std::signbit(value)) continue;
    const double distance = std::abs(candidate - value);
    if (distance < best_distance || (distance == best_distance && (bits & 1) == 0))
      best = static_cast<std::uint16_t>(bits), best_distance = distance;
  }
  return best;
}

TEST(Convert, DoubleToSixteenBitsRoundsOnce) {
  std::mt19937_64 random(3);
  std::vector<double> values{1.0 + 0x1p-8 + 0x1p-40,
                             1.0 + 0x1p-8 - 0x1p-40,
                             -(1.0 + 0x1p-8 + 0x1p-40),
                             1.0 + 0x1p-11 + 0x1p-40,
                             1.0 + 0x1p-11 - 0x1p-45,
                             0x1.004p-20,
                             3e-8};
  for (int i = 0; i < 40; ++i)
    values.push_back(std::ldexp(static_cast<double>(random()) - 9e18, -63));
  for (const double value : values) {
    std::uint16_t bf16 = 0, f16 = 0;
    ASSERT_TRUE(convert(&value, DType::f64, &bf16, DType::bf16, 1));
    ASSERT_TRUE(convert(&value, DType::f64, &f16, DType::f16, 1));
    EXPECT_EQ(bf16, nearest_by_search(value, bf16_to_f32)) << value;
    EXPECT_EQ(f16, nearest_by_search(value, f16_to_f32)) << value;
  }
}

TEST(Convert, WideningAndBackIsExact) {
  std::vector<std::uint16_t> all(0x10000), back(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const DType narrow : {DType::bf16, DType::f16})
    for (const DType wide : {DType::f32, DType::f64}) {
      std::vector<double> middle(all.size());
      ASSERT_TRUE(convert(all.data(), narrow, middle.data(), wide, 0x10000));
      ASSERT_TRUE(convert(middle.data(), wide, back.data(), narrow, 0x10000));
      const unsigned infinity = narrow == DType::bf16 ? 0x7f80 : 0x7c00;
      for (unsigned i = 0; i < all.size(); ++i)
        if ((i & 0x7fffu) <= infinity)
          ASSERT_EQ(all[i], back[i]);
        else
          ASSERT_GT(back[i] & 0x7fffu, infinity);
    }
}

TEST(Convert, IntegersMustFit) {
  const std::int64_t good[]{-7, 127}, bad[]{3, 300};
  std::int8_t small[2];
  EXPECT_TRUE(convert(good, DType::i64, small, DType::i8, 2));
  EXPECT_EQ(small[0], -7);
  EXPECT_FALSE(convert(bad, DType::i64, small, DType::i8, 2));
  EXPECT_FALSE(convert(good, DType::i64, small, DType::u8, 2));
}

TEST(Convert, FiniteNumbersStayFinite) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr DType kNarrow[] = {DType::f16, DType::bf16, DType::f32};
  for (const DType to : kNarrow) {
    std::uint32_t result = 0;
    const auto fits = [&](double value) { return convert(&value, DType::f64, &result, to, 1); };
    for (const double value : {kInfinite, -kInfinite, std::nan(""), 65519.0, -1e-300})
      EXPECT_TRUE(fits(value)) << value << ' ' << name_of(to);
    EXPECT_EQ(fits(65520), to != DType::f16) << name_of(to);
    EXPECT_FALSE(fits(-1e39)) << name_of(to);
  }
  const float largest = std::numeric_limits<float>::max();
  std::uint16_t result = 0;
  EXPECT_FALSE(convert(&largest, DType::f32, &result, DType::bf16, 1));
}

TEST(Convert, FamiliesDoNotMix) {
  EXPECT_TRUE(convertible(DType::bf16, DType::f64));
  EXPECT_TRUE(convertible(DType::f8e4m3, DType::f8e4m3));
  EXPECT_FALSE(convertible(DType::f8e4m3, DType::f32));
  EXPECT_FALSE(convertible(DType::i32, DType::f32));
}

}  // namespace
}  // namespace tessera
