// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/elementwise.hpp"

#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

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
