// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/initial_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "normal.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

// Known answers of the Random123 library for philox4x32, 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsAreFnv1a) {
  EXPECT_EQ(stream_of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(stream_of("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(stream_of("foobar"), 0x85944171f73967e8u);
}

TEST(Normal, QuantilesAreRight) {
  EXPECT_EQ(normal_quantile(0.5), 0.0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_NEAR(normal_quantile(0.25), -0.6744897501960817, 1e-15);  // AS 241's own checks
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-20), -9.262340089798408, 1e-13);
  for (double x = -8.0; x < 8.0; x += 0.0371)
    EXPECT_NEAR(normal_cdf(x), 0.5 * std::erfc(-x / std::sqrt(2.0)), 1e-15) << x;
  for (double x = -8.0; x < 5.0; x += 0.0371)
    EXPECT_NEAR(normal_quantile(0.5 * std::erfc(-x / std::sqrt(2.0))), x, 1e-9) << x;
}

constexpr Philox weight_stream{42, stream_of("layers.0.attention.wq.weight")};

/// The whole tensor [12, 10, 9].
at::Tensor whole(const Normal& normal, at::ScalarType dtype = at::kDouble) {
  const at::Tensor out = at::empty({12, 10, 9}, dtype);
  fill_normal(out, weight_stream, {12, 10, 9}, {0, 0, 0}, normal);
  return out;
}

// tests/golden/make_initial_values.py computes them another way and agrees to the last bit.
TEST(InitialValues, SixteenOfThemStayForEver) {
  const at::Tensor got = at::empty({4, 4}, at::kDouble);
  fill_normal(got, weight_stream, {4, 4}, {0, 0}, {.deviation = 0.02});
  const double want[16] = {
      -0x1.6a5daff6a6a45p-7, 0x1.fd110fde2ab72p-9,  0x1.22618be25d8f1p-7,  -0x1.dd179bd4b64a0p-7,
      -0x1.1c15b1927bd81p-7, 0x1.cb016a82b9fbbp-8,  -0x1.9dd685c3274e7p-7, 0x1.b3ec7e58de51ap-10,
      -0x1.0627fda85723ep-6, 0x1.a72073ba77228p-8,  0x1.07f96d6855fb1p-6,  0x1.e8dabc3572df5p-6,
      -0x1.dfca179bcd069p-6, 0x1.100070506bdb6p-12, 0x1.6d11dc4154c11p-8,  0x1.10f0ad18db27cp-8};
  for (int i = 0; i < 16; ++i) EXPECT_EQ(got.view(-1)[i].item<double>(), want[i]) << i;
}

/// Element `index` one at a time, from philox4x32() and normal_quantile().
double twin(const CutNormal& n, std::uint64_t index) {
  const PhiloxBlock block = weight_stream.block(index);
  const std::uint64_t k = (std::uint64_t{block[1]} << 32 | block[0]) & 0xfffffffffffffu;
  const double u = (static_cast<double>(k) + 0.5) * 0x1p-52;
  const double p = n.probability_low + u * (n.probability_high - n.probability_low);
  const double value =
      n.mean + n.deviation * normal_quantile(std::clamp(p, 0x1p-60, 1.0 - 0x1p-53));
  return std::clamp(value, n.low, n.high);
}

// By vectors, for odd numbers of elements: both tails, their far parts, and indices over 32 bits.
TEST(InitialValues, AreThoseOfTheTwinBitByBit) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t rows = std::int64_t{1} << 33, width = 701;
  for (const auto& [low, high] : {std::pair{-infinity, infinity},
                                  {-2.0, 3.0},
                                  {6.5, 7.0},
                                  {-8.2, -6.6},
                                  {1.4, 1.5},
                                  {-1.5, -1.4},
                                  {8.0, infinity}}) {
    const Normal normal{.mean = 0.0, .deviation = 1.0, .cut_low = low, .cut_high = high};
    const CutNormal cut = cut_normal(0.0, 1.0, low, high);
    for (const std::int64_t row : {std::int64_t{0}, rows - 1}) {
      const at::Tensor got = at::empty({1, width}, at::kDouble);
      fill_normal(got, weight_stream, {rows, width}, {row, 0}, normal);
      const double* values = got.const_data_ptr<double>();
      for (std::int64_t i = 0; i < width; ++i)
        ASSERT_EQ(values[i], twin(cut, static_cast<std::uint64_t>(row * width + i)))
            << "row " << row << " of [" << low << ", " << high << "], " << i;
    }
  }
}

// As drawn one at a time by the first version, for indices around 2^32.
TEST(InitialValues, TailsStayForEver) {
  constexpr std::int64_t first = (std::int64_t{1} << 32) - 2;
  const auto four = [](double low, double high) {
    const at::Tensor got = at::empty({4}, at::kDouble);
    fill_normal(got, weight_stream, {first + 4}, {first},
                {.mean = 0.0, .deviation = 1.0, .cut_low = low, .cut_high = high});
    const double* values = got.const_data_ptr<double>();
    return std::array<double, 4>{values[0], values[1], values[2], values[3]};
  };
  EXPECT_EQ(four(6.5, 7.0), (std::array<double, 4>{0x1.ae1433b199058p+2, 0x1.aa54a0e37a4d8p+2,
                                                   0x1.a027ccc771d46p+2, 0x1.a2f1d2d329d4bp+2}));
  EXPECT_EQ(four(-8.2, -6.6),
            (std::array<double, 4>{-0x1.a8858f7ee1febp+2, -0x1.a9fca40587fe6p+2,
                                   -0x1.cbb8a38952296p+2, -0x1.b28d3c2fa842cp+2}));
  EXPECT_EQ(four(-3.0, -1.5),
            (std::array<double, 4>{-0x1.9c3e94ee2d281p+0, -0x1.aefe516c4b501p+0,
                                   -0x1.686a135e486c3p+1, -0x1.08fc17440982cp+1}));
}

TEST(InitialValues, AnyBoxIsThatRegionOfTheWhole) {
  const Normal normal{.mean = 0.5, .deviation = 2.0, .cut_low = -3.0, .cut_high = 3.0};
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor all = whole(normal, dtype);
    for (const Shape& offset : {Shape{0, 0, 0}, Shape{3, 0, 0}, Shape{5, 2, 1}, Shape{11, 9, 8}}) {
      const Shape extent{12 - offset[0], (10 - offset[1] + 1) / 2, 9 - offset[2]};
      const at::Tensor box = at::empty(extent, dtype);
      fill_normal(box, weight_stream, {12, 10, 9}, offset, normal);
      at::Tensor region = all;
      for (int dim = 0; dim < 3; ++dim) region = region.narrow(dim, offset[dim], extent[dim]);
      EXPECT_TRUE(at::equal(box, region));
    }
  }
}

TEST(InitialValues, DtypesAreRoundingsOfOneValue) {
  const at::Tensor exact = whole({});
  EXPECT_TRUE(at::equal(whole({}, at::kFloat), exact.to(at::kFloat)));
  EXPECT_TRUE(at::equal(whole({}, at::kBFloat16), exact.to(at::kBFloat16)));
}

TEST(InitialValues, HaveTheirMoments) {
  const at::Tensor x = at::empty({200000}, at::kDouble);
  fill_normal(x, weight_stream, {200000}, {0}, {.mean = 1.0, .deviation = 3.0});
  EXPECT_NEAR(x.mean().item<double>(), 1.0, 0.03);
  EXPECT_NEAR(x.std().item<double>(), 3.0, 0.03);
  fill_normal(x, weight_stream, {200000}, {0},
              {.deviation = 1.0, .cut_low = -2.0, .cut_high = 2.0});
  EXPECT_NEAR(x.std().item<double>(), 0.8796, 0.005);  // of a normal cut at two deviations
  EXPECT_GE(x.min().item<double>(), -2.0);
  EXPECT_LE(x.max().item<double>(), 2.0);
  EXPECT_GT(x.max().item<double>(), 1.99);
}

TEST(InitialValues, StreamsAndSeedsDiffer) {
  const at::Tensor a = at::empty({64}), b = at::empty({64}), c = at::empty({64});
  fill_normal(a, {1, stream_of("a")}, {64}, {0}, {});
  fill_normal(b, {1, stream_of("b")}, {64}, {0}, {});
  fill_normal(c, {2, stream_of("a")}, {64}, {0}, {});
  EXPECT_FALSE(at::equal(a, b));
  EXPECT_FALSE(at::equal(a, c));
}

TEST(InitialValues, TakesScalarsAndEmptyBoxes) {
  const at::Tensor scalar = at::empty({}, at::kDouble), first = at::empty({1}, at::kDouble);
  fill_normal(scalar, weight_stream, {}, {}, {});
  fill_normal(first, weight_stream, {5}, {0}, {});
  EXPECT_EQ(scalar.item<double>(), first.item<double>());
  fill_normal(at::empty({0, 4}), weight_stream, {5, 4}, {5, 0}, {});
  fill_normal(at::empty({2, 0}), weight_stream, {5, 4}, {0, 4}, {});
}

TEST(InitialValues, RefusesWhatDoesNotFit) {
  EXPECT_THROW(fill_normal(at::empty({4}), weight_stream, {5}, {2}, {}), ContractViolation);
  EXPECT_THROW(fill_normal(at::empty({4}), weight_stream, {4}, {0}, {.deviation = 0.0}), Error);
  EXPECT_THROW(
      fill_normal(at::empty({4}), weight_stream, {4}, {0}, {.cut_low = 1.0, .cut_high = -1.0}),
      Error);
  EXPECT_THROW(fill_normal(at::empty({4}), weight_stream, {4}, {0}, {.cut_low = 50.0}), Error);
}

}  // namespace
}  // namespace tessera::kernels
