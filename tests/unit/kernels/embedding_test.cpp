// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/embedding.hpp"

#include "tessera/base/error.hpp"
#include "tessera/kernels/operation.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

/// embedding() of a part of a vocabulary, and its twin with all tokens that the part has not.
Kernel kernel(const at::Tensor& tokens, std::int64_t row_begin) {
  return [=](const std::vector<at::Tensor>& in) {
    return kernels::embedding(in[0], tokens.to(test_device()), row_begin);
  };
}
Kernel twin(const at::Tensor& tokens, std::int64_t row_begin) {
  return [=](const std::vector<at::Tensor>& in) {
    const at::Tensor rows = tokens - row_begin;
    const at::Tensor elsewhere = rows.lt(0).logical_or(rows.ge(in[0].size(0)));
    return at::embedding(in[0], rows.masked_fill(elsewhere, 0))
        .masked_fill(elsewhere.unsqueeze(-1), 0);
  };
}

at::Tensor gradient_of_ones(const at::Tensor& table, const at::Tensor& tokens) {
  const at::Tensor y = kernels::embedding(table, tokens.to(test_device()));
  torch::autograd::backward({y}, {at::ones_like(y)});
  return table.grad().cpu();
}

TEST(Embedding, EqualsItsTwin) {
  at::manual_seed(5);
  for (const auto dtype : dtypes)
    for (const std::int64_t width : {1, 13, 96, 520})
      for (const std::int64_t row_begin : {0, 7, -3}) {
        const at::Tensor tokens = at::randint(0, 12, {3, 31}, at::kLong);
        expect_twins(kernel(tokens, row_begin), twin(tokens, row_begin),
                     {random({12, width}, dtype)});
      }
}

/// `count` tokens of row 3 between others, which begin at place `before` of the sorted tokens.
at::Tensor many_of_one_row(std::int64_t before, std::int64_t count) {
  const at::Tensor others = at::arange(before, at::kLong).remainder(3).sub(1);
  return at::cat({others, at::full({count}, 3, at::kLong), at::tensor({4, 9, 9}, at::kLong)})
      .index_select(0, at::randn({before + count + 3}).argsort());
}

TEST(Embedding, AddsUpRowsWithManyTokens) {
  at::manual_seed(6);
  for (const auto dtype : dtypes)
    for (const std::int64_t count : {31, 32, 33, 34, 300})
      for (const std::int64_t width : {7, 77, 520}) {
        const at::Tensor tokens = many_of_one_row(2, count);
        expect_twins(kernel(tokens, 0), twin(tokens, 0), {random({10, width}, dtype)});
        expect_twins(kernel(tokens, 2), twin(tokens, 2), {random({3, width}, dtype)});
        expect_twins(kernel(tokens, 4), twin(tokens, 4), {random({3, width}, dtype)});
      }
}

TEST(Embedding, AddsUpRowsThatBeginAnywhere) {
  at::manual_seed(8);
  for (std::int64_t before = 0; before < 17; ++before) {
    const at::Tensor tokens = many_of_one_row(before, 40);
    expect_twins(kernel(tokens, -1), twin(tokens, -1), {random({11, 24}, at::kBFloat16)});
  }
}

TEST(Embedding, TakesViews) {
  at::manual_seed(9);
  const at::Tensor tokens = at::randint(0, 6, {2, 5}, at::kLong).t();
  const at::Tensor odd = random({49}, at::kBFloat16).narrow(0, 1, 48).view({6, 8});
  for (const at::Tensor& table : {random({8, 6}, at::kBFloat16).t(), odd})
    expect_twins(kernel(tokens, 0), twin(tokens, 0), {table});
  const auto gradient = [&](const at::Tensor& dy) {
    const at::Tensor table = random({6, 8}, at::kFloat).requires_grad_();
    torch::autograd::backward({kernel(tokens, 0)({table})}, {dy});
    return table.grad();
  };
  const at::Tensor dy = random({1, 2, 8}, at::kFloat).expand({5, 2, 8});
  EXPECT_TRUE(at::equal(gradient(dy), gradient(dy.contiguous())));
}

TEST(Embedding, RoundsASumOnce) {
  const at::Tensor table = random({4, 8}, at::kBFloat16).requires_grad_();
  const at::Tensor tokens = at::cat({at::full({3000}, 2, at::kLong), at::zeros({300}, at::kLong)});
  const at::Tensor gradient = gradient_of_ones(table, tokens).to(at::kFloat);
  const at::Tensor wanted = at::tensor({300.0F, 0.0F, 3008.0F, 0.0F});  // 3000, in bfloat16
  EXPECT_TRUE(at::equal(gradient, wanted.unsqueeze(1).expand({4, 8}))) << gradient;
}

TEST(Embedding, HasTheBitsOfLibTorchInFloat32OnAHost) {
  if (!test_device().is_cpu()) return;
  at::manual_seed(7);
  const at::Tensor tokens = at::randint(0, 9, {700}, at::kLong), dy = at::randn({700, 33});
  const auto gradient = [&](auto of) {
    const at::Tensor table = at::ones({9, 33}).requires_grad_();
    torch::autograd::backward({of(table)}, {dy});
    return table.grad();
  };
  EXPECT_TRUE(
      at::equal(gradient([&](const auto& table) { return kernels::embedding(table, tokens); }),
                gradient([&](const auto& table) { return at::embedding(table, tokens); })));
}

TEST(Embedding, OfNoTokensAndOfFrozenTables) {
  const at::Tensor none = at::empty({0}, at::kLong);
  EXPECT_EQ(kernels::embedding(random({3, 5}, at::kFloat), none.to(test_device())).sizes(),
            at::IntArrayRef({0, 5}));
  const at::Tensor table = random({3, 5}, at::kFloat).requires_grad_();
  EXPECT_TRUE(at::equal(gradient_of_ones(table, none), at::zeros({3, 5})));
  EXPECT_FALSE(
      kernels::embedding(random({3, 5}, at::kFloat), none.to(test_device())).requires_grad());
}

TEST(Embedding, RefusesWhatDoesNotFit) {
  const at::Tensor tokens = at::zeros({2}, options(at::kLong));
  EXPECT_THROW(kernels::embedding(random({6}, at::kFloat), tokens), ContractViolation);
  EXPECT_THROW(kernels::embedding(random({6, 2}, at::kFloat), tokens.to(at::kInt)),
               ContractViolation);
  EXPECT_THROW(kernels::embedding(random({6, 2}, at::kFloat), tokens.to(at::kMeta)),
               ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
