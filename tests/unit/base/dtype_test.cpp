// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/dtype.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::f8e5m2); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    EXPECT_GT(size_of(dtype), 0u);
  }
  EXPECT_EQ(dtype_from_name("bfloat16"), DType::bf16);
  EXPECT_FALSE(dtype_from_name("float31"));
}

TEST(DType, EveryHalfSurvivesARoundTrip) {
  for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = f16_to_f32(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide))));
      continue;
    }
    ASSERT_EQ(f32_to_f16(wide), half) << bits;
    if (!std::isnan(bf16_to_f32(half))) {
      ASSERT_EQ(f32_to_bf16(bf16_to_f32(half)), half) << bits;
    }
  }
}

TEST(DType, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie to even, down
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie to even, up
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(f32_to_f16(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(f32_to_f16(0x1.8p-25f), 0x0001);
}

}  // namespace
}  // namespace tessera
