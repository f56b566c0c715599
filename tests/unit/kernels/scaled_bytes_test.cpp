// SPDX-License-Identifier: Apache-2.0
// The twins are LibTorch's casts, element by element.
#include "tessera/kernels/scaled_bytes.hpp"

#include <cmath>

#include "float8_types.hpp"
#include "tessera/base/error.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

using at::Tensor;

constexpr ScaleBlock kBlocks[] = {
    {}, {1, ScaleBlock::whole}, {ScaleBlock::whole, 1}, {1, 4}, {3, 1}, {2, 5}};

/// The scale of each element of a matrix like `x`.
Tensor spread(const Tensor& scales, const Tensor& x, ScaleBlock block) {
  Tensor result = at::empty(x.sizes(), scales.options());
  for (std::int64_t i = 0; i < x.size(0); ++i)
    for (std::int64_t j = 0; j < x.size(1); ++j)
      result[i][j] = scales[i / block.rows][j / block.columns];
  return result;
}

/// Of the block of element [i, j].
double largest_around(const Tensor& x, std::int64_t i, std::int64_t j, ScaleBlock block) {
  double most = 0;
  for (std::int64_t r = 0; r < x.size(0); ++r)
    for (std::int64_t c = 0; c < x.size(1); ++c)
      if (r / block.rows == i / block.rows && c / block.columns == j / block.columns)
        most = std::max(most, std::abs(x[r][c].item<double>()));
  return most;
}

Tensor bytes_of_torch(const Tensor& x, const Tensor& scales, DType type) {
  const Tensor scaled = (x.to(at::kFloat) * scales).clamp(-largest_of(type), largest_of(type));
  return scaled.to(torchs(type)).view(at::kByte);
}

/// Of many sizes, with ties between neighbours of both formats, zeros and both signs.
Tensor values(at::IntArrayRef shape, at::ScalarType dtype) {
  const Tensor wide = at::randn(shape) * at::pow(2.0, at::randint(-24, 12, shape).to(at::kFloat));
  const Tensor ties = at::randint(-64, 64, shape).to(at::kFloat) / 8;
  return at::where(at::randint(0, 2, shape).to(at::kBool), wide, ties).to(dtype);
}

TEST(ScaledBytes, EqualTorchsCasts) {
  at::manual_seed(3);
  for (const at::ScalarType dtype : dtypes)
    for (const DType type : float8_types)
      for (const ScaleBlock block : kBlocks)
        for (const bool powers : {false, true}) {
          const Tensor x = values({7, 19}, dtype);
          const Tensor largest = largest_magnitudes(x, block),
                       scales = scales_for(largest, type, powers);
          for (std::int64_t i = 0; i < 7; ++i)
            for (std::int64_t j = 0; j < 19; ++j)
              ASSERT_EQ(largest[i / block.rows][j / block.columns].item<double>(),
                        largest_around(x, i, j, block));
          const Tensor of_each = spread(scales, x, block);
          const ScaledBytes ours = to_bytes(x, scales, type, block);
          EXPECT_TRUE(at::equal(ours.bytes, bytes_of_torch(x, of_each, type)));
          const Tensor wide = ours.bytes.view(torchs(type)).to(at::kFloat) / of_each;
          EXPECT_TRUE(at::equal(from_bytes(ours, at::kFloat), wide));
          EXPECT_TRUE(at::equal(from_bytes(ours, at::kBFloat16), wide.to(at::kBFloat16)));
          // A scale that is no power of two costs bits.
          EXPECT_TRUE(!powers || at::equal(from_bytes(ours, at::kBFloat16).to(at::kFloat), wide));
        }
}

TEST(ScaledBytes, EveryByteStandsForTorchsValue) {
  const Tensor bytes = at::arange(256).to(at::kByte).view({16, 16}), one = at::ones({1, 1});
  for (const DType type : float8_types) {
    const Tensor ours = from_bytes({bytes, one, type, {}}, at::kFloat),
                 torchs_own = bytes.view(torchs(type)).to(at::kFloat);
    EXPECT_TRUE(at::equal(ours.isnan(), torchs_own.isnan()));
    EXPECT_TRUE(at::equal(ours.nan_to_num(0, 1e9, -1e9), torchs_own.nan_to_num(0, 1e9, -1e9)));
  }
}

TEST(ScaledBytes, RoundsTiesToEvenAndStopsAtTheLargest) {
  const Tensor x =
      at::tensor({17.0F, 19.0F, -17.0F, 449.0F, 1e30F, 0.0009765625F, 0.0029296875F, -0.0F});
  const Tensor bytes = to_bytes(x.view({1, 8}), at::ones({1, 1}), DType::f8e4m3, {}).bytes;
  const Tensor read = from_bytes({bytes, at::ones({1, 1}), DType::f8e4m3, {}}, at::kFloat);
  EXPECT_TRUE(at::equal(
      read[0], at::tensor({16.0F, 20.0F, -16.0F, 448.0F, 448.0F, 0.0F, 0.00390625F, -0.0F})));
  EXPECT_EQ(bytes[0][7].item<int>(), 0x80);
}

TEST(ScaledBytes, ScalesArePowersOfTwoOnlyIfWanted) {
  const Tensor largest = at::tensor({0.0F, 448.0F, 1.0F, 7.0F, 3e38F}, at::kFloat).view({1, 5});
  const Tensor exact = scales_for(largest, DType::f8e4m3, false),
               powers = scales_for(largest, DType::f8e4m3, true);
  EXPECT_EQ(exact[0][0].item<float>(), static_cast<float>(448 / 1e-12));
  EXPECT_EQ(exact[0][2].item<float>(), 448.0F);
  EXPECT_TRUE(at::equal(powers, at::pow(2.0, exact.log2().floor())));
  EXPECT_EQ(powers[0][1].item<float>(), 1.0F);
  EXPECT_EQ(powers[0][3].item<float>(), 64.0F);
}

TEST(ScaledBytes, WhatIsNotFiniteSpoilsItsBlockOnly) {
  for (const float bad : {std::nanf(""), HUGE_VALF})
    for (const DType type : float8_types) {
      Tensor x = at::ones({2, 3});
      x[0][1] = bad;
      const ScaleBlock rows{1, ScaleBlock::whole};
      const Tensor scales = scales_for(largest_magnitudes(x, rows), type, true);
      const Tensor read = from_bytes(to_bytes(x, scales, type, rows), at::kFloat);
      EXPECT_TRUE(read[0].isnan().any().item<bool>());
      EXPECT_TRUE(at::equal(read[1], at::ones({3})));
    }
}

TEST(ScaledBytes, ReadsViewsAndNothing) {
  at::manual_seed(4);
  const Tensor x = values({40, 600}, at::kBFloat16);
  for (const Tensor& view : {x.t(), x.narrow(1, 100, 300), x.narrow(0, 0, 0), x.narrow(1, 0, 0)})
    for (const ScaleBlock block : kBlocks) {
      const Tensor whole = view.contiguous();
      const Tensor largest = largest_magnitudes(view, block);
      EXPECT_TRUE(at::equal(largest, largest_magnitudes(whole, block)));
      const Tensor scales = scales_for(largest, DType::f8e4m3, false);
      EXPECT_TRUE(at::equal(to_bytes(view, scales, DType::f8e4m3, block).bytes,
                            to_bytes(whole, scales, DType::f8e4m3, block).bytes));
    }
}

TEST(ScaledBytes, RefusesScalesOfOtherBlocks) {
  const Tensor x = at::ones({4, 6});
  EXPECT_THROW(to_bytes(x, at::ones({4, 1}), DType::f8e4m3, {}), ContractViolation);
  EXPECT_THROW(to_bytes(x, at::ones({1, 1}), DType::bf16, {}), ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
