// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/exact_sum.hpp"

#include <gtest/gtest.h>
#include "tessera/kernels/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "test_device.hpp"

namespace tessera::kernels {
namespace {

/// Values whose exponents spread over `spread` powers of two.
template <class T>
std::vector<T> wild(std::size_t count, int spread, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> exponent(-spread, spread);
  std::uniform_real_distribution<double> mantissa(-1.0, 1.0);
  std::vector<T> values(count);
  for (T& v : values) v = static_cast<T>(std::ldexp(mantissa(random), exponent(random)));
  return values;
}

template <class T>
double squares_in_parts(const std::vector<T>& values, std::size_t parts) {
  ExactSum total;
  std::vector<std::int64_t> words(ExactSum::word_count);
  for (std::size_t p = 0; p < parts; ++p) {
    ExactSum part;
    const std::size_t begin = values.size() * p / parts, end = values.size() * (p + 1) / parts;
    part.add_squares(std::span(values).subspan(begin, end - begin));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] += part.words()[i];
  }
  total.set_words(std::span<const std::int64_t, ExactSum::word_count>(words.data(), words.size()));
  return total.value();
}

TEST(ExactSum, DoesNotDependOnOrderOrParts) {
  for (const int spread : {0, 3, 40, 120}) {
    auto floats = wild<float>(5003, std::min(spread, 60), 11);
    auto doubles = wild<double>(5003, spread, 12);
    const double f = squares_in_parts(floats, 1), d = squares_in_parts(doubles, 1);
    std::shuffle(floats.begin(), floats.end(), std::mt19937(3));
    std::shuffle(doubles.begin(), doubles.end(), std::mt19937(4));
    for (const std::size_t parts : {1, 2, 7, 512}) {
      EXPECT_EQ(squares_in_parts(floats, parts), f);
      EXPECT_EQ(squares_in_parts(doubles, parts), d);
    }
  }
}

/// f32 squares are exact in long double's 64 bits, and so are sums that stay within 2^16 of the
/// largest.
TEST(ExactSum, IsTheExactSum) {
  const auto values = wild<float>(4000, 2, 13);
  long double sum = 0;
  for (const float v : values) sum += static_cast<long double>(v) * v;
  EXPECT_NEAR(squares_in_parts(values, 3) / static_cast<double>(sum), 1.0, 3e-16);
}

std::vector<std::int64_t> words_of(ExactSum& sum) {
  return {sum.words().begin(), sum.words().end()};
}

/// A block is summed in three doubles without error: every bit of its terms must be in the words,
/// as when each is added by itself.
TEST(ExactSum, BlocksLoseNoBit) {
  for (const int spread : {0, 1, 4, 9, 16, 30, 60})
    for (const std::size_t count : {1, 7, 63, 1024, 1025, 4999}) {
      const auto floats = wild<float>(count, spread, 21), more = wild<float>(count, spread, 22);
      const auto doubles = wild<double>(count, spread, 23);
      ExactSum blocks[4], each[4];
      blocks[0].add(floats);
      blocks[1].add_squares(more);
      blocks[2].add(doubles);
      blocks[3].add_squares(doubles);
      for (std::size_t i = 0; i < count; ++i) {
        each[0].add(static_cast<double>(floats[i]));
        each[1].add(static_cast<double>(more[i]) * more[i]);
        each[2].add(doubles[i]);
        each[3].add(doubles[i] * doubles[i]);
      }
      for (int k = 0; k < 4; ++k)
        EXPECT_EQ(words_of(blocks[k]), words_of(each[k]))
            << "kind " << k << ", spread " << spread << ", " << count;
    }
}

TEST(ExactSum, CancelsExactly) {
  ExactSum sum;
  auto values = wild<double>(3000, 500, 14);
  sum.add(values);
  sum.add(1e-300);
  for (double& v : values) v = -v;
  sum.add(values);
  EXPECT_EQ(sum.value(), 1e-300);
  sum.add(-2e-300);
  EXPECT_EQ(sum.value(), -1e-300);
}

TEST(ExactSum, RoundsOnceToNearestEven) {
  const auto sum_of = [](std::vector<double> values) {
    ExactSum sum;
    for (const double v : values) sum.add(v);
    return sum.value();
  };
  const double half = 0x1p-53, tiny = std::numeric_limits<double>::denorm_min(),
               max = std::numeric_limits<double>::max();
  EXPECT_EQ(sum_of({1.0, half}), 1.0);
  EXPECT_EQ(sum_of({1.0, half, tiny}), 1.0 + 0x1p-52);
  EXPECT_EQ(sum_of({1.0 + 0x1p-52, half}), 1.0 + 0x1p-51);
  EXPECT_EQ(sum_of({-1.0, -half, -tiny}), -1.0 - 0x1p-52);
  EXPECT_EQ(sum_of({tiny, tiny}), 2 * tiny);
  EXPECT_EQ(sum_of({max, max, -max}), max);
  EXPECT_EQ(sum_of({max, max}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(sum_of({}), 0.0);
}

TEST(ExactSum, CountsWhatIsNotFinite) {
  ExactSum sum, other;
  std::vector<float> values(2000, 1.0F);
  values[7] = std::numeric_limits<float>::infinity();
  values[1999] = std::nanf("");
  sum.add_squares(values);
  EXPECT_EQ(sum.nonfinite_count(), 2);
  EXPECT_TRUE(std::isnan(sum.value()));
  other.add(1.0);
  other.merge(sum);
  EXPECT_EQ(other.nonfinite_count(), 2);
}

TEST(ExactSum, ManyAdditionsCarry) {
  ExactSum sum;
  const std::vector<double> values(1024, 0x1.fffffffffffffp0);
  for (int i = 0; i < 1000; ++i) sum.add(values);
  for (int i = 0; i < 3; ++i) {
    const ExactSum copy = sum;
    sum.merge(copy);
  }
  EXPECT_EQ(sum.value(), 8000 * 1024 * 0x1.fffffffffffffp0);
}

TEST(ExactSum, TakesTensorsOfEveryDtype) {
  at::manual_seed(15);
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({140021}, at::kDouble).to(tessera::test::test_device(), dtype),
                     wide = x.to(at::kCPU, at::kDouble);
    ExactSum whole, parts, want;
    whole.add_squares(x);
    for (const at::Tensor& part : x.chunk(9)) parts.add_squares(part);
    want.add_squares(std::span(wide.const_data_ptr<double>(), 140021));
    EXPECT_EQ(whole.value(), parts.value());
    EXPECT_EQ(whole.value(), want.value());
  }
}

/// On a device, squares of a warp are summed on grids that follow the largest one; what is finer,
/// very large or very small, or not finite takes another way.
TEST(ExactSum, TensorsLoseNoBit) {
  const auto device = tessera::test::test_device();
  const auto expect_words = [&](const at::Tensor& x, const char* what) {
    ExactSum whole, each;
    whole.add_squares(x.to(device));
    const at::Tensor wide = x.to(at::kDouble);
    for (std::int64_t i = 0; i < wide.numel(); ++i)
      each.add(wide.const_data_ptr<double>()[i] * wide.const_data_ptr<double>()[i]);
    EXPECT_EQ(words_of(whole), words_of(each)) << what << ", " << x.scalar_type();
  };
  for (const int spread : {0, 5, 20, 60, 500})
    for (const std::int64_t count : {1, 511, 8193, 70001}) {
      const auto values = wild<double>(static_cast<std::size_t>(count), spread, 31);
      const at::Tensor doubles = at::tensor(at::ArrayRef<double>(values), at::kDouble);
      for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
        const at::Tensor x = doubles.to(dtype);
        expect_words(x, "wild");
        expect_words(x.narrow(0, count / 2, count - count / 2), "from the middle");
      }
    }
  at::Tensor rising = at::arange(20000, at::kDouble).mul(0.01).exp2();
  expect_words(rising, "rising");
  expect_words(rising.flip(0).contiguous(), "falling");
  at::Tensor outlier = at::randn({9000}, at::kFloat);
  outlier[4000] = 1e30F;
  outlier[4001] = std::numeric_limits<float>::infinity();
  outlier[4002] = 1e-40F;
  expect_words(outlier, "outliers");
  expect_words(at::zeros({5000}, at::kFloat), "zeros");
}

}  // namespace
}  // namespace tessera::kernels
