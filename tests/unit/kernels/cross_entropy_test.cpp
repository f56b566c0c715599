// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/cross_entropy.hpp"

#include "tessera/base/error.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

struct Case {
  at::Tensor logits, labels;
};

Case make_case(std::int64_t rows, std::int64_t vocabulary, at::ScalarType dtype) {
  Case c{random({rows, vocabulary}, dtype, 4.0),
         at::randint(0, vocabulary, {rows}, at::kLong).to(test_device())};
  c.labels[rows / 2] = ignored_label;
  return c;
}

/// Losses of all rows from `parts` cuts of the vocabulary, as ranks would compute them.
at::Tensor losses(const Case& c, std::int64_t parts) {
  const auto cuts = c.logits.chunk(parts, 1);
  at::Tensor max = row_max(cuts[0]);
  for (const auto& cut : cuts) max = at::maximum(max, row_max(cut));
  at::Tensor sum = at::zeros_like(max), target = at::zeros_like(max);
  std::int64_t begin = 0;
  for (const auto& cut : cuts) {
    const SumExpAndTarget part = sum_exp_and_target(cut, max, c.labels, begin);
    sum += part.sum_exp;
    target += part.target;
    begin += cut.size(1);
  }
  return at::where(c.labels == ignored_label, at::zeros_like(sum), sum.log() - target);
}

at::Tensor gradient(const Case& c, std::int64_t parts, double scale) {
  const at::Tensor max = row_max(c.logits);
  const at::Tensor sum = sum_exp_and_target(c.logits, max, c.labels, 0).sum_exp;
  const at::Tensor logits = c.logits.clone();
  std::int64_t begin = 0;
  for (at::Tensor cut : logits.chunk(parts, 1)) {
    softmax_gradient_(cut, max, sum, c.labels, begin, scale);
    begin += cut.size(1);
  }
  return logits;
}

TEST(CrossEntropy, LossesAndGradientsEqualTheTwin) {
  at::manual_seed(5);
  for (const auto dtype : dtypes)
    for (const std::int64_t vocabulary : {5, 256, 1003}) {
      const Case c = make_case(17, vocabulary, dtype);
      const auto logits = exact(c.logits).clone().requires_grad_();
      const auto want =
          at::cross_entropy_loss(logits, c.labels.cpu(), {}, at::Reduction::None, ignored_label);
      torch::autograd::backward({want.sum() * 0.125});
      for (const std::int64_t parts : {1, 2, 3}) {
        expect_close(losses(c, parts), want, dtype == at::kDouble ? 1e-12 : 2e-7);
        expect_close(gradient(c, parts, 0.125), logits.grad(), tolerance(dtype));
      }
    }
}

TEST(CrossEntropy, LongVocabulariesLoseNothing) {
  at::manual_seed(6);
  const Case c = make_case(4, 128256, at::kFloat);
  const auto want = at::cross_entropy_loss(exact(c.logits), c.labels.cpu(), {}, at::Reduction::None,
                                           ignored_label);
  expect_close(losses(c, 1), want, 1e-7);
}

TEST(CrossEntropy, TakesInt32LabelsAndStridedRows) {
  Case c = make_case(6, 40, at::kFloat);
  const at::Tensor whole = losses(c, 1);
  c.labels = c.labels.to(at::kInt);
  EXPECT_TRUE(at::equal(losses(c, 1), whole));
}

TEST(CrossEntropy, MaskedLogitsCountForNothing) {
  const float inf = std::numeric_limits<float>::infinity();
  const at::Tensor logits = at::tensor({1.0F, -inf, 2.0F}, options()).view({1, 3});
  const at::Tensor labels = at::tensor({2}, options(at::kLong)), max = row_max(logits);
  EXPECT_EQ(max.item<float>(), 2.0F);
  // An exponential may be off by one unit in its last place, which the sum then rounds.
  EXPECT_NEAR(sum_exp_and_target(logits, max, labels, 0).sum_exp.item<float>(), 1 + std::exp(-1.0F),
              std::numeric_limits<float>::epsilon());
}

TEST(CrossEntropy, NanIsSeen) {
  for (const std::int64_t column : {0, 20, 36}) {
    at::Tensor logits = at::zeros({1, 37}, options());
    logits[0][column] = std::nan("");
    EXPECT_TRUE(std::isnan(row_max(logits).item<float>())) << column;
  }
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  at::Tensor logits = at::zeros({3, 8});
  EXPECT_THROW(row_max(logits.t()), ContractViolation);
  EXPECT_THROW(sum_exp_and_target(logits, at::zeros({3}), at::zeros({2}, at::kLong), 0),
               ContractViolation);
  EXPECT_THROW(
      sum_exp_and_target(logits, at::zeros({3}, at::kDouble), at::zeros({3}, at::kLong), 0),
      ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
