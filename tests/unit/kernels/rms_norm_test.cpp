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
    for (const std::int64_t dim :
         {5, 8, 64, 96, 129, 256, 520, 1032})  // at dim 1 the gradient cancels to nothing
      expect_twins(fused_norm, composed_norm, {random({3, 67, dim}, dtype), random({dim}, dtype)});
}

/// Rows that a block of threads holds in registers, and longer ones.
TEST(RmsNorm, WideRowsEqualTheTwin) {
  at::manual_seed(3);
  for (const auto dtype : dtypes)
    for (const std::int64_t dim : {2056, 4104, 8200})
      expect_twins(fused_norm, composed_norm, {random({19, dim}, dtype), random({dim}, dtype)});
}

/// Both outputs beside each other, with and without a residual.
TEST(SummedRmsNorm, EqualsItsTwin) {
  at::manual_seed(2);
  const auto both = [](const SumAndNorm& made) { return at::cat({made.sum, made.norm}, -1); };
  const auto twin = [](const at::Tensor& sum, const at::Tensor& weight) {
    return at::cat({sum, composed_norm({sum, weight})}, -1);
  };
  for (const auto dtype : dtypes)
    for (const std::int64_t dim : {5, 8, 96, 129, 256, 520}) {
      const auto x = random({3, 67, dim}, dtype), weight = random({dim}, dtype);
      expect_twins([&](const auto& in) { return both(summed_rms_norm(in[0], {}, in[1], 1e-5)); },
                   [&](const auto& in) { return twin(in[0], in[1]); }, {x, weight});
      expect_twins([&](const auto& in) { return both(summed_rms_norm(in[0], in[2], in[1], 1e-5)); },
                   [&](const auto& in) { return twin(in[0] + in[2], in[1]); },
                   {x, weight, random({3, 67, dim}, dtype)}, 2);
    }
}

/// In the bits of an addition and a norm, strided operands too.
TEST(SummedRmsNorm, HasTheBitsOfBoth) {
  for (const auto dtype : dtypes) {
    const auto x = random({6, 4, 24}, dtype).transpose(0, 1), residual = random({4, 6, 24}, dtype),
               weight = random({24}, dtype);
    const SumAndNorm made = summed_rms_norm(x, residual, weight, 1e-5);
    EXPECT_TRUE(at::equal(made.sum, x + residual));
    EXPECT_TRUE(at::equal(made.norm, rms_norm(x + residual, weight, 1e-5)));
    EXPECT_TRUE(at::equal(summed_rms_norm(x, {}, weight, 1e-5).norm, rms_norm(x, weight, 1e-5)));
  }
  const at::Tensor none = at::empty({0, 8}, options());
  EXPECT_EQ(summed_rms_norm(none, none, random({8}, at::kFloat), 1e-5).norm.size(0), 0);
  EXPECT_THROW(summed_rms_norm(at::ones({2, 8}), at::ones({3, 8}), at::ones({8}), 1e-5),
               ContractViolation);
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
