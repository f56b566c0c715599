// SPDX-License-Identifier: Apache-2.0
// The twins are the host's kernels: equal bits.
#include "device_scaled_bytes.hpp"

#include <cmath>

#include "float8_types.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

using at::Tensor;

constexpr auto kWhole = ScaleBlock::whole;
constexpr ScaleBlock kBlocks[] = {{},     {1, kWhole}, {kWhole, 1}, {1, 32}, {32, 1},
                                  {1, 1}, {3, 1},      {2, 5},      {1, 4}};

Tensor on_test_device(const Tensor& x) { return x.to(test_device()); }

void expect_bits(const Tensor& device, const Tensor& host) {
  ASSERT_EQ(device.sizes(), host.sizes());
  ASSERT_EQ(device.scalar_type(), host.scalar_type());
  const Tensor ours = device.to(at::kCPU).to(at::kDouble), theirs = host.to(at::kDouble);
  EXPECT_TRUE(at::equal(ours.isnan(), theirs.isnan()));
  EXPECT_TRUE(at::equal(ours.nan_to_num(), theirs.nan_to_num()));
  EXPECT_TRUE(at::equal(ours.signbit(), theirs.signbit()) || theirs.isnan().any().item<bool>());
}

/// The signs of NaN are free.
void expect_bytes(const Tensor& device, const Tensor& host, DType type) {
  expect_bits(device.to(at::kCPU).view(torchs(type)).to(at::kFloat),
              host.view(torchs(type)).to(at::kFloat));
}

/// Of many sizes; with what is not finite in one row where `bad`.
Tensor values(at::IntArrayRef shape, at::ScalarType type, bool bad) {
  Tensor x = at::randn(shape) * at::pow(2.0, at::randint(-30, 14, shape).to(at::kFloat));
  if (bad) {
    x[1][0] = std::nanf("");
    x[2][3] = HUGE_VALF;
    x[4].zero_();
  }
  return x.to(type);
}

ScaledBytes copied(const ScaledBytes& x) {
  return {on_test_device(x.bytes), on_test_device(x.scales), x.type, x.block};
}

TEST(DeviceScaledBytes, EqualTheHosts) {
  at::manual_seed(8);
  for (const at::ScalarType dtype : dtypes)
    for (const DType type : float8_types)
      for (const ScaleBlock block : kBlocks)
        for (const bool powers : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << dtype << " to " << name_of(type) << ", blocks " << block.rows << " x "
                       << block.columns << ", powers " << powers);
          const Tensor x = values({38, 71}, dtype, powers);
          const Tensor largest = largest_magnitudes(x, block),
                       scales = scales_for(largest, type, powers);
          expect_bits(on_device::largest_magnitudes(on_test_device(x), block), largest);
          expect_bits(on_device::scales_for(on_test_device(largest), type, powers), scales);
          const ScaledBytes host = to_bytes(x, scales, type, block), device = copied(host);
          expect_bytes(on_device::to_bytes(on_test_device(x), device.scales, type, block).bytes,
                       host.bytes, type);
          expect_bytes(
              on_device::to_bytes(on_test_device(x), device.scales, type, block, ByteOrder::columns)
                  .bytes,
              host.bytes, type);
          for (const at::ScalarType read : dtypes)
            expect_bits(on_device::from_bytes(device, read), from_bytes(host, read));
        }
}

TEST(DeviceScaledBytes, ReadTransposesAndNothing) {
  at::manual_seed(9);
  const Tensor x = values({40, 64}, at::kBFloat16, false);
  for (const Tensor& view : {x.t(), x.narrow(1, 8, 30), x.narrow(0, 0, 0), x.narrow(1, 0, 0)})
    for (const ScaleBlock block : {kBlocks[0], kBlocks[1], kBlocks[2]}) {
      const Tensor largest = largest_magnitudes(view, block),
                   scales = scales_for(largest, DType::f8e4m3, false);
      const Tensor device =
          on_test_device(x).as_strided(view.sizes(), view.strides(), view.storage_offset());
      expect_bits(on_device::largest_magnitudes(device, block), largest);
      expect_bytes(on_device::to_bytes(device, on_test_device(scales), DType::f8e4m3, block).bytes,
                   to_bytes(view, scales, DType::f8e4m3, block).bytes, DType::f8e4m3);
    }
}

/// More rows and columns than a block of a kernel's threads takes, in packs and alone.
TEST(DeviceScaledBytes, TakeManyRowsAndColumns) {
  at::manual_seed(12);
  for (const auto& [rows, columns] :
       {std::array{300, 528}, {528, 136}, {259, 130}, {5, 1040}, {3, 16400}, {1, 1}})
    for (const at::ScalarType dtype : dtypes)
      for (const ScaleBlock block : {kBlocks[0], kBlocks[1], kBlocks[2]})
        for (const ByteOrder order : {ByteOrder::rows, ByteOrder::columns}) {
          const Tensor x = values({rows, columns}, dtype, rows > 4 && columns > 3);
          const Tensor largest = largest_magnitudes(x, block),
                       scales = scales_for(largest, DType::f8e4m3, true);
          expect_bits(on_device::largest_magnitudes(on_test_device(x), block), largest);
          const ScaledBytes made = on_device::to_bytes(on_test_device(x), on_test_device(scales),
                                                       DType::f8e4m3, block, order);
          expect_bytes(made.bytes, to_bytes(x, scales, DType::f8e4m3, block).bytes, DType::f8e4m3);
          const ScaledBytes once =
              to_scaled_bytes(on_test_device(x), DType::f8e4m3, true, block, order);
          expect_bits(once.scales, scales);
          if (once.inverses.defined()) expect_bits(once.inverses, scales.reciprocal());
          expect_bytes(once.bytes, made.bytes.cpu(), DType::f8e4m3);
        }
}

/// With rows and columns at an end of a strip, a tile or a pack, and beyond it.
TEST(DeviceScaledBytes, RoundBothWaysAtOnce) {
  at::manual_seed(13);
  for (const auto& [rows, columns] :
       {std::array{300, 528}, {528, 136}, {259, 130}, {128, 256}, {5, 1040}, {1, 1}, {0, 16}})
    for (const at::ScalarType dtype : dtypes)
      for (const DType type : float8_types) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ' ' << dtype);
        const bool bad = type == DType::f8e5m2 && rows > 4 && columns > 3;
        const Tensor x = values({rows, columns}, dtype, bad);
        const ScaledBothWays host = to_scaled_both_ways(x, type, true);
        const ScaledBothWays made = to_scaled_both_ways(on_test_device(x), type, true);
        for (const auto& [ours, theirs] :
             {std::pair{&made.rows, &host.rows}, {&made.columns, &host.columns}}) {
          expect_bits(ours->scales, theirs->scales);
          if (ours->inverses.defined()) expect_bits(ours->inverses, theirs->scales.reciprocal());
          expect_bytes(ours->bytes, theirs->bytes, type);
          EXPECT_EQ(ours->block.rows, theirs->block.rows);
        }
      }
}

TEST(DeviceScaledBytes, ScalesOfMxEqualTheHosts) {
  at::manual_seed(10);
  const Tensor powers = at::pow(2.0, at::randint(-149, 127, {300}).to(at::kDouble));
  const Tensor ends = at::tensor({std::nan(""), HUGE_VAL, 0.0, 1e-40, std::ldexp(448.0, -127)});
  const Tensor largest =
      at::cat({powers, powers * 1.75, powers * (1 + at::randint(0, 1000, {300}) / 1000),
               powers * 448 / 512, ends})
          .to(at::kFloat)
          .view({1, -1});
  for (const DType type : float8_types)
    for (const MxScale how : {MxScale::floor, MxScale::rceil}) {
      const MxScales host = mx_scales(largest, type, how),
                     device = on_device::mx_scales(on_test_device(largest), type, how);
      expect_bits(device.bytes, host.bytes);
      expect_bits(device.stored, host.stored);
      expect_bits(device.read, host.read);
    }
}

ScaledBytes stored(const Tensor& x, DType type, ScaleBlock block) {
  return to_bytes(x, scales_for(largest_magnitudes(x, block), type, false), type, block);
}

/// Sizes of which none, or each, is a multiple of 16.
TEST(ScaledMm, EqualsTheProductOfWhatTheBytesStandFor) {
  at::manual_seed(11);
  constexpr ScaleBlock kRow{1, kWhole}, kColumn{kWhole, 1}, kAll{};
  for (const auto& [m, k, n] : {std::array{17, 35, 50}, {32, 16, 48}, {1, 64, 16}})
    for (const auto& [of_a, of_b] :
         {std::pair{kAll, kAll}, {kRow, kColumn}, {kRow, kAll}, {kAll, kColumn}})
      for (const bool turned : {false, true}) {
        const DType type =
            of_a.rows == kWhole && of_b.columns == kWhole ? DType::f8e5m2 : DType::f8e4m3;
        const ScaledBytes a = stored(random({m, k}, at::kBFloat16), type, of_a);
        const Tensor right = random({k, n}, at::kBFloat16);
        const ScaledBytes b = turned ? transposed(stored(right.t().contiguous(), DType::f8e4m3,
                                                         {of_b.columns, of_b.rows}))
                                     : stored(right, DType::f8e4m3, of_b);
        const Tensor y = scaled_mm(a, b, false);
        EXPECT_EQ(y.scalar_type(), at::kBFloat16);
        const Tensor wide = exact(from_bytes(a, at::kDouble)).mm(exact(from_bytes(b, at::kDouble)));
        expect_close(y, wide, tolerance(at::kBFloat16));
      }
}

}  // namespace
}  // namespace tessera::kernels::test
