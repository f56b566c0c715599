// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/elementwise.hpp"

#include "tessera/base/error.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

TEST(Elementwise, CastsLikeTorch) {
  at::manual_seed(7);
  for (const std::int64_t count : {0, 1, 15, 16, 1000, 40000}) {
    for (const auto from : dtypes)
      for (const auto to : dtypes) {
        const at::Tensor source = random({count}, from, 100.0),
                         got = at::empty({count}, source.options().dtype(to));
        cast_into(got, source);
        EXPECT_TRUE(at::equal(got, source.to(to)));
      }
  }
}

TEST(Elementwise, CastKeepsTheEdges) {
  const float inf = std::numeric_limits<float>::infinity();
  const at::Tensor source =
      at::tensor({0.0F, -0.0F, inf, -inf, 3.4e38F, 1e-40F, 1.00390625F, 1.01171875F}, options());
  const at::Tensor got = at::empty({8}, options(at::kBFloat16)),
                   nan = at::empty({1}, options(at::kBFloat16));
  cast_into(got, source);
  EXPECT_TRUE(at::equal(got, source.to(at::kBFloat16)));
  cast_into(nan, at::full({1}, std::nanf(""), options()));
  EXPECT_TRUE(std::isnan(nan.item<float>()));
}

TEST(Elementwise, Accumulates) {
  at::manual_seed(8);
  for (const auto from : dtypes)
    for (const auto to : {at::kFloat, at::kDouble}) {
      const at::Tensor source = random({20001}, from), sum = random({20001}, to),
                       want = sum + source.to(to);
      accumulate(sum, source);
      expect_close(sum, want, 1e-7);
    }
  EXPECT_THROW(accumulate(at::zeros({3}, at::kBFloat16), at::zeros({3})), ContractViolation);
  EXPECT_THROW(accumulate(at::zeros({3}), at::zeros({4})), ContractViolation);
}

TEST(Elementwise, SumOfSquaresIsDoubleAndFixed) {
  at::manual_seed(9);
  for (const auto dtype : dtypes) {
    const at::Tensor x = random({200003}, dtype);
    at::set_num_threads(1);
    const double one = sum_of_squares(x);
    at::set_num_threads(2);
    EXPECT_EQ(one, sum_of_squares(x));
    EXPECT_NEAR(one / x.to(at::kDouble).square().sum().item<double>(), 1.0, 1e-13);
  }
  EXPECT_EQ(sum_of_squares(at::zeros({0}, options())), 0.0);
}

}  // namespace
}  // namespace tessera::kernels::test
