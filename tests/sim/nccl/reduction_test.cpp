// SPDX-License-Identifier: Apache-2.0
// The arithmetic alone, against the same in double.
#include "reduction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/base/dtype.hpp"

namespace tessera::sim::nccl {
namespace {

template <class T>
std::vector<T> reduce(std::vector<std::vector<T>> in, ncclDataType_t type, ncclRedOp_t op) {
  std::vector<const std::byte*> pointers;
  for (const auto& part : in) pointers.push_back(reinterpret_cast<const std::byte*>(part.data()));
  nccl::reduce(pointers, reinterpret_cast<std::byte*>(in.back().data()), in.back().size(), type,
               op);
  return in.back();  // in place on the last input
}

using Ints = std::vector<std::int32_t>;

TEST(Reduction, Operations) {
  const std::vector<Ints> in{{1, 7, -3}, {5, 2, 4}, {-2, 9, 8}};
  EXPECT_EQ(reduce(in, ncclInt32, ncclSum), (Ints{4, 18, 9}));
  EXPECT_EQ(reduce(in, ncclInt32, ncclProd), (Ints{-10, 126, -96}));
  EXPECT_EQ(reduce(in, ncclInt32, ncclMax), (Ints{5, 9, 8}));
  EXPECT_EQ(reduce(in, ncclInt32, ncclMin), (Ints{-2, 2, -3}));
  EXPECT_EQ(reduce(in, ncclInt32, ncclAvg), (Ints{1, 6, 3}));
}

TEST(Reduction, IntegersWrap) {
  const auto most = std::numeric_limits<std::int8_t>::max();
  EXPECT_EQ(reduce<std::int8_t>({{most}, {1}}, ncclInt8, ncclSum), std::vector<std::int8_t>{-128});
  EXPECT_EQ(reduce<std::uint8_t>({{200}, {100}}, ncclUint8, ncclSum),
            std::vector<std::uint8_t>{44});
  EXPECT_EQ(reduce<std::uint64_t>({{~0ull}, {2}}, ncclUint64, ncclSum),
            std::vector<std::uint64_t>{1});
  EXPECT_EQ(reduce<std::uint32_t>({{1u << 31}, {1}}, ncclUint32, ncclMax),
            std::vector<std::uint32_t>{1u << 31});
  EXPECT_EQ(reduce<std::int64_t>({{1ll << 40}, {-1}}, ncclInt64, ncclMin),
            std::vector<std::int64_t>{-1});
}

/// 1e8 + 1 - 1e8 is 0 in rank order and 1 in another.
TEST(Reduction, InRankOrder) {
  EXPECT_EQ(reduce<float>({{1e8f}, {1}, {-1e8f}}, ncclFloat32, ncclSum), std::vector<float>{0});
  EXPECT_EQ(reduce<float>({{1e8f}, {-1e8f}, {1}}, ncclFloat32, ncclSum), std::vector<float>{1});
}

TEST(Reduction, HalfTypesRoundAtEachStep) {
  const auto bf16 = [](float x) { return std::vector<std::uint16_t>{f32_to_bf16(x)}; };
  EXPECT_EQ(reduce<std::uint16_t>({bf16(256), bf16(1), bf16(1)}, ncclBfloat16, ncclSum),
            bf16(256));  // 258 if rounded once
  const auto f16 = [](float x) { return std::vector<std::uint16_t>{f32_to_f16(x)}; };
  EXPECT_EQ(reduce<std::uint16_t>({f16(2048), f16(1), f16(1)}, ncclFloat16, ncclSum), f16(2048));
  EXPECT_EQ(reduce<std::uint16_t>({f16(1.5f), f16(-2)}, ncclFloat16, ncclProd), f16(-3));
}

TEST(Reduction, AveragesAndExtremesOfNumbers) {
  EXPECT_EQ(reduce<double>({{1, 2}, {3, 5}}, ncclFloat64, ncclAvg), (std::vector<double>{2, 3.5}));
  EXPECT_EQ(reduce<float>({{NAN}, {2}}, ncclFloat32, ncclMax), std::vector<float>{2});
  EXPECT_TRUE(std::isnan(reduce<float>({{NAN}, {2}}, ncclFloat32, ncclSum)[0]));
}

/// More than one block of the loop, and a rest.
TEST(Reduction, LongInputs) {
  std::vector<float> a(1500), b(1500), sum(1500);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 2.0f * static_cast<float>(i);
    sum[i] = a[i] + b[i];
  }
  EXPECT_EQ(reduce<float>({a, b}, ncclFloat32, ncclSum), sum);
}

TEST(Reduction, EightBitFloatsAreOnlyMoved) {
  EXPECT_TRUE(can_reduce(ncclBfloat16));
  EXPECT_FALSE(can_reduce(ncclFloat8e4m3));
  EXPECT_FALSE(can_reduce(ncclFloat8e5m2));
}

}  // namespace
}  // namespace tessera::sim::nccl
