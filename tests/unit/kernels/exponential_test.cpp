// SPDX-License-Identifier: Apache-2.0
// The vectors' exp, seen through the sums that use it: one column a row makes sum_exp(x, m = 0) =
// exp(x).
#include <cmath>

#include "host/row_functions.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

double exp_of(double x) {
  const double zero = 0;
  const std::int64_t label = -100;
  double sum = 0, target = 0;
  host_functions().f64.sum_exp({&x, 1}, &zero, {&label, 0}, &sum, &target, {1, 1});
  return sum;
}

float exp_of(float x) {
  const float zero = 0;
  const std::int64_t label = -100;
  float sum = 0, target = 0;
  host_functions().f32.sum_exp({&x, 1}, &zero, {&label, 0}, &sum, &target, {1, 1});
  return sum;
}

TEST(Exponential, IsWithinTwoUnitsInTheLastPlace) {
  double worst32 = 0, worst64 = 0;
  for (double x = -87.0; x < 88.0; x += 0.00071) {
    const auto narrow = static_cast<float>(x);
    worst32 =
        std::max(worst32, std::abs(exp_of(narrow) / std::exp(static_cast<double>(narrow)) - 1.0));
    worst64 = std::max(worst64, std::abs(exp_of(8 * x) / std::exp(8 * x) - 1.0));
  }
  EXPECT_LE(worst32, 1.3e-7);
  EXPECT_LE(worst64, 4.5e-16);
  RecordProperty("worst32", std::to_string(worst32 * 0x1p24));
}

TEST(Exponential, KeepsTheEdges) {
  EXPECT_EQ(exp_of(0.0F), 1.0F);
  EXPECT_EQ(exp_of(-100.0F), 0.0F);
  EXPECT_NEAR(exp_of(-87.3F) / std::exp(-87.3F), 1.0F, 3e-7F);
  EXPECT_EQ(exp_of(std::nextafter(-87.3F, -88.0F)), 0.0F);
  EXPECT_EQ(exp_of(-std::numeric_limits<float>::infinity()), 0.0F);
  EXPECT_EQ(exp_of(100.0F), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(exp_of(std::nanf(""))));
  EXPECT_EQ(exp_of(0.0), 1.0);
  EXPECT_EQ(exp_of(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_TRUE(std::isnan(exp_of(std::nan(""))));
}

}  // namespace
}  // namespace tessera::kernels::test
