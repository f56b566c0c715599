// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/mx_scales.hpp"

#include <cmath>

#include "float8_types.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/scaled_bytes.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

using at::Tensor;

/// The scale by the definition, without limits of E8M0.
double scale_twin(double largest, DType type, MxScale how) {
  const double power = type == DType::f8e4m3 ? 256 : 32768;
  if (how == MxScale::floor) return std::exp2(std::floor(std::log2(largest)) - std::log2(power));
  double scale = std::exp2(std::floor(std::log2(largest / largest_of(type))));
  while (scale * largest_of(type) < largest) scale *= 2;
  return scale;
}

double value_of(int byte) { return std::exp2(byte - 127); }

TEST(MxScales, FollowTheDefinition) {
  at::manual_seed(6);
  const Tensor powers = at::pow(2.0, at::randint(-100, 120, {400}).to(at::kDouble));
  for (const DType type : float8_types) {
    const Tensor edges = powers.narrow(0, 0, 200) * largest_of(type) / 512;
    const Tensor largest =
        at::cat({powers * (1 + at::randint(0, 1000, {400}) / 1000), powers, edges, edges * 1.001})
            .to(at::kFloat)
            .view({-1, 2});
    for (const MxScale how : {MxScale::floor, MxScale::rceil}) {
      const Tensor bytes = mx_scales(largest, type, how).bytes.flatten();
      for (std::int64_t i = 0; i < bytes.numel(); ++i)
        ASSERT_EQ(value_of(bytes[i].item<int>()),
                  scale_twin(largest.flatten()[i].item<double>(), type, how));
    }
  }
}

/// An element is read as what is nearest to it on the grid of its block.
TEST(MxScales, ElementsAreReadWithTheScaleTheyHave) {
  at::manual_seed(7);
  for (const at::ScalarType dtype : dtypes)
    for (const MxScale how : {MxScale::floor, MxScale::rceil}) {
      const ScaleBlock block{1, mx_block};
      const Tensor x = (at::randn({6, 96}) * at::pow(2.0, at::randint(-30, 30, {6, 1}))).to(dtype);
      const MxScales scales = mx_scales(largest_magnitudes(x, block), DType::f8e4m3, how);
      ScaledBytes stored = to_bytes(x, scales.stored, DType::f8e4m3, block);
      stored.scales = scales.read;
      const Tensor spread =
          at::pow(2.0, scales.bytes.to(at::kDouble) - 127).repeat_interleave(mx_block, 1);
      const Tensor bytes = (x.to(at::kFloat) / spread.to(at::kFloat)).clamp(-448, 448);
      const Tensor expected = bytes.to(at::kFloat8_e4m3fn).to(at::kDouble) * spread;
      EXPECT_TRUE(at::equal(from_bytes(stored, dtype).to(at::kDouble), expected));
    }
}

/// What torchao stores where E8M0 ends.
TEST(MxScales, Ends) {
  const float nan = std::nanf(""), infinity = HUGE_VALF, tiny = std::ldexp(1.0F, -140);
  const Tensor largest = at::tensor({nan, infinity, 0.0F, tiny, 448 * std::ldexp(1.0F, -127)});
  const auto bytes_of = [&](MxScale how) {
    return mx_scales(largest.view({1, 5}), DType::f8e4m3, how).bytes[0].to(at::kInt);
  };
  EXPECT_TRUE(at::equal(bytes_of(MxScale::floor), at::tensor({255, 247, 0, 0, 0}).to(at::kInt)));
  EXPECT_TRUE(at::equal(bytes_of(MxScale::rceil), at::tensor({255, 254, 0, 0, 0}).to(at::kInt)));
  for (const MxScale how : {MxScale::floor, MxScale::rceil})
    for (const float bad : {nan, infinity}) {
      Tensor x = at::ones({1, 64});
      x[0][40] = bad;
      const ScaleBlock block{1, mx_block};
      const MxScales scales = mx_scales(largest_magnitudes(x, block), DType::f8e4m3, how);
      ScaledBytes stored = to_bytes(x, scales.stored, DType::f8e4m3, block);
      stored.scales = scales.read;
      const Tensor read = from_bytes(stored, at::kFloat)[0];
      EXPECT_TRUE(at::equal(read.narrow(0, 0, 32), at::ones({32})));
      EXPECT_FALSE(read[40].isfinite().item<bool>());
      EXPECT_EQ(read.narrow(0, 32, 32).isnan().all().item<bool>(), std::isnan(bad));
    }
  EXPECT_THROW(mx_scales(at::ones({1, 1}), DType::bf16, MxScale::floor), ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
