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

TEST(Embedding, AddsUpRowsWithManyTokens) {
  at::manual_seed(6);
  for (const auto dtype : dtypes)
    for (const std::int64_t count : {31, 32, 33, 34, 300}) {
      // A row with `count` tokens between others, one of which no token is of.
      const at::Tensor tokens =
          at::cat({at::full({count}, 3, at::kLong), at::tensor({1, 4, 1, 9}, at::kLong)})
              .index_select(0, at::randn({count + 4}).argsort());
      expect_twins(kernel(tokens, 0), twin(tokens, 0), {random({10, 40}, dtype)});
      expect_twins(kernel(tokens, 2), twin(tokens, 2), {random({3, 7}, dtype)});
    }
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
}

}  // namespace
}  // namespace tessera::kernels::test
