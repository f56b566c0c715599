// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "half.hpp"
#include "mpi/comm/typed_values.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

using test::Values;

/// The slow twin: one element, one tree, written from the interface's sentence.
template <class W>
W tree_sum(const std::vector<W>& values, int low, int high) {
  if (high - low == 1) return values[static_cast<std::size_t>(low)];
  int half = 1;
  while (2 * half < high - low) half *= 2;
  return tree_sum(values, low, low + half) + tree_sum(values, low + half, high);
}

std::vector<Values> random_parts(int ranks, DType dtype, std::int64_t count) {
  std::mt19937 generator(static_cast<unsigned>(ranks));
  std::normal_distribution<double> normal(0, 3);
  std::vector<Values> parts;
  for (int r = 0; r < ranks; ++r) {
    parts.emplace_back(dtype, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = normal(generator);
      parts.back().set(i, dtype == DType::u8 ? std::fabs(x) : x);
    }
  }
  return parts;
}

std::vector<const void*> pointers(std::vector<Values>& parts) {
  std::vector<const void*> result;
  for (Values& part : parts) result.push_back(part.buffer().data);
  return result;
}

TEST(Reduction, SumsOverTheTreeOfRanksAndRoundsOnce) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16, 33}) {
      const std::int64_t count = 1500;
      auto parts = random_parts(ranks, dtype, count);
      Values out(dtype, count), expected(dtype, count);
      for (std::int64_t i = 0; i < count; ++i) {
        std::vector<double> wide;
        std::vector<float> narrow;
        for (const Values& part : parts)
          wide.push_back(part[i]), narrow.push_back(static_cast<float>(part[i]));
        expected.set(i,
                     dtype == DType::f64 ? tree_sum(wide, 0, ranks) : tree_sum(narrow, 0, ranks));
      }
      reduce_parts(pointers(parts), out.buffer().data, count, dtype, Op::sum);
      EXPECT_EQ(out.bytes(), expected.bytes()) << name_of(dtype) << " over " << ranks;
    }
  }
}

/// What this processor can run, the plain code always: a machine without AVX-512 sees the same
/// bits.
TEST(Reduction, EveryInstructionSetGivesTheSameBits) {
  for (const DType dtype : test::kReducible) {
    for (const Op op : {Op::sum, Op::max, Op::min}) {
      auto parts = random_parts(7, dtype, 2999);
      const auto in = pointers(parts);
      Values expected(dtype, 2999);
      EXPECT_TRUE(reduce_generic(in.data(), 7, expected.buffer().data, 2999, dtype, op));
      for (Reduction* reduction : usable_reductions()) {
        Values out(dtype, 2999);
        EXPECT_TRUE(reduction(in.data(), 7, out.buffer().data, 2999, dtype, op));
        EXPECT_EQ(out.bytes(), expected.bytes()) << name_of(dtype);
      }
    }
  }
}

TEST(Reduction, OutMayBeAnyOfTheParts) {
  for (int target = 0; target < 5; ++target) {
    auto parts = random_parts(5, DType::f32, 3000);
    Values expected(DType::f32, 3000);
    reduce_parts(pointers(parts), expected.buffer().data, 3000, DType::f32, Op::sum);
    reduce_parts(pointers(parts), parts[static_cast<std::size_t>(target)].buffer().data, 3000,
                 DType::f32, Op::sum);
    EXPECT_EQ(parts[static_cast<std::size_t>(target)].bytes(), expected.bytes());
  }
}

TEST(Reduction, NanWinsAndIntegersWrap) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> a{nan, 1, -2}, b{1, nan, -3}, out(3);
  const std::vector<const void*> parts{a.data(), b.data()};
  for (const Op op : {Op::max, Op::min}) {
    reduce_parts(parts, out.data(), 3, DType::f32, op);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
    EXPECT_EQ(out[2], op == Op::max ? -2 : -3);
  }
  std::int32_t big = std::numeric_limits<std::int32_t>::max(), one = 1, sum = 0;
  reduce_parts(std::vector<const void*>{&big, &one}, &sum, 1, DType::i32, Op::sum);
  EXPECT_EQ(sum, std::numeric_limits<std::int32_t>::min());
  EXPECT_THROW(reduce_parts(parts, out.data(), 3, DType::f8e4m3, Op::sum), Error);
}

/// Branch-free conversions against base's, on every half and on floats around every rounding
/// boundary.
TEST(Half, AgreesWithBase) {
  for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(widen(Bf16{half})),
              std::bit_cast<std::uint32_t>(bf16_to_f32(half)));
    const float x = widen(F16{half}), y = f16_to_f32(half);
    EXPECT_TRUE(std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
                (std::isnan(x) && std::isnan(y)))
        << bits;
  }
  std::mt19937 generator(7);
  for (int i = 0; i < 2'000'000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
    ASSERT_EQ(narrow_to_bf16(x).bits, f32_to_bf16(x)) << x;
    if (!std::isnan(x)) {
      ASSERT_EQ(narrow_to_f16(x).bits, f32_to_f16(x)) << x;
    }
  }
  for (std::uint32_t half = 0; half < 0x7c00u; ++half) {
    const float low = f16_to_f32(static_cast<std::uint16_t>(half)),
                high = f16_to_f32(static_cast<std::uint16_t>(half + 1));
    const float tie = low + (std::isinf(high) ? 65536.0f - low : high - low) / 2;
    for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 1e9f), -tie})
      ASSERT_EQ(narrow_to_f16(x).bits, f32_to_f16(x)) << x;
  }
}

}  // namespace
}  // namespace tessera::comm
