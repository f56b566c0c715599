// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/rms_norm.hpp"

#include "tessera/base/error.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

at::Tensor composed_norm(const std::vector<at::Tensor>& in) {
  return in[0] * (in[0].square().mean(-1, true) + 1e-5).rsqrt() * in[1];
}

at::Tensor fused_norm(const std::vector<at::Tensor>& in) { return rms_norm(in[0], in[1], 1e-5); }

TEST(RmsNorm, EqualsItsTwin) {
  at::manual_seed(1);
  for (const auto dtype : dtypes)
    for (const std::int64_t dim : {5, 64, 129, 256})  // at dim 1 the gradient cancels to nothing
      expect_twins(fused_norm, composed_norm, {random({3, 67, dim}, dtype), random({dim}, dtype)});
}

TEST(RmsNorm, TakesNoRowsAndStridedInput) {
  const auto x = random({4, 6, 8}, at::kFloat).transpose(0, 1), weight = random({8}, at::kFloat);
  expect_close(rms_norm(x, weight, 1e-5), composed_norm({exact(x), exact(weight)}), 1e-6);
  EXPECT_EQ(rms_norm(at::empty({0, 8}, options()), weight, 1e-5).sizes(), at::IntArrayRef({0, 8}));
}

TEST(RmsNorm, WeightGradientDoesNotDependOnThreads) {
  const auto x = random({1000, 64}, at::kFloat), dy = random({1000, 64}, at::kFloat);
  const auto gradient = [&](int threads) {
    at::set_num_threads(threads);
    const auto weight = at::ones({64}, options()).requires_grad_();
    torch::autograd::backward({rms_norm(x, weight, 1e-5)}, {dy});
    return weight.grad();
  };
  const at::Tensor two = gradient(2), one = gradient(1);
  EXPECT_TRUE(at::equal(two, one));
}

TEST(RmsNorm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(rms_norm(at::ones({2, 8}), at::ones({7}), 1e-5), ContractViolation);
  EXPECT_THROW(rms_norm(at::ones({2, 8}), at::ones({8}, at::kDouble), 1e-5), ContractViolation);
  EXPECT_THROW(rms_norm(at::ones({2, 8}, at::kHalf), at::ones({8}, at::kHalf), 1e-5), Error);
}

}  // namespace
}  // namespace tessera::kernels::test
