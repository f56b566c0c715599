// SPDX-License-Identifier: Apache-2.0
// Rounded products of experts, against a layer for each expert: rounded_linear(), whose bytes and
// results are torchao's (rounded_linear_test.cpp).
#include "tessera/parallel/rounded_experts.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/relative_distance.hpp"
#include "tessera/kernels/grouped_mm.hpp"
#include "test_device.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using plan::LinearRecipe;
using test::relative_distance;

constexpr std::int64_t kExperts = 5, kInputs = 64, kOutputs = 96;
/// No rows, less than a block of MX, one, many.
constexpr std::array<std::int64_t, kExperts> kRowsOfExperts{5, 0, 32, 300, 1};

struct ExpertResult {
  Tensor y, dx, dw;
};

struct ExpertInputs {
  Tensor x, w, dy;
};

/// Of very different sizes, so that each scale matters.
ExpertInputs expert_inputs(at::ScalarType type) {
  at::manual_seed(11);
  std::int64_t rows = 0;
  for (const std::int64_t count : kRowsOfExperts) rows += count;
  const auto spread = [&](at::IntArrayRef shape) {
    return (at::randn(shape, at::kDouble) * (2 * at::randn(shape, at::kDouble)).exp())
        .to(test::test_device(), type);
  };
  return {spread({rows, kInputs}), spread({kExperts, kOutputs, kInputs}), spread({rows, kOutputs})};
}

LinearRounding rounding(LinearRecipe recipe, comm::Communicator& alone) {
  LinearRounding how{recipe, LinearCut::nothing, &alone};
  how.emulated = true;
  return how;
}

/// Rows of zeros change no column's scale, and fill its last block.
Tensor in_whole_blocks(const Tensor& rows) {
  const std::int64_t whole = (rows.size(0) + 31) / 32 * 32;
  const Tensor padded = at::zeros({whole, rows.size(1)}, rows.options());
  padded.narrow(0, 0, rows.size(0)).copy_(rows);
  return padded;
}

ExpertResult each_by_itself(const ExpertInputs& in, const LinearRounding& how) {
  ExpertResult all{at::zeros_like(in.dy), at::zeros_like(in.x), at::zeros_like(in.w)};
  std::int64_t begin = 0;
  for (std::int64_t e = 0; e < kExperts; ++e) {
    const std::int64_t count = kRowsOfExperts[static_cast<std::size_t>(e)];
    if (count == 0) continue;
    WeightGradients gradients;
    const Tensor x = in_whole_blocks(in.x.narrow(0, begin, count)).requires_grad_(),
                 w = in.w[e].clone().requires_grad_();
    const Tensor y = rounded_linear(x, std::array{RoundedWeight{w, how}}, gradients)[0];
    y.backward(in_whole_blocks(in.dy.narrow(0, begin, count)));
    all.y.narrow(0, begin, count).copy_(y.detach().narrow(0, 0, count));
    all.dx.narrow(0, begin, count).copy_(x.grad().narrow(0, 0, count));
    all.dw[e].copy_(w.grad());
    begin += count;
  }
  return all;
}

ExpertResult together(const ExpertInputs& in, const LinearRounding& how, bool later) {
  WeightGradients gradients;
  if (later) gradients.put_off();
  const Tensor counts = at::tensor(kRowsOfExperts, at::kLong),
               groups = kernels::row_groups(counts, in.x);
  const Tensor x = in.x.clone().requires_grad_(), w = in.w.clone().requires_grad_();
  const Tensor y = rounded_expert_linear(x, w, groups, how, gradients);
  y.backward(in.dy);
  EXPECT_EQ(w.grad().defined(), !later);
  for (const auto& compute : gradients.take()) compute();
  EXPECT_TRUE(at::equal(y.detach(), rounded_expert_product(x, w, groups, how)));
  return {y.detach(), x.grad(), w.grad()};
}

TEST(RoundedExperts, EachExpertIsALayer) {
  const auto alone = comm::make_self_communicator("tp");
  for (const auto recipe : {LinearRecipe::rowwise, LinearRecipe::mxfp8_rceil})
    for (const auto& [type, limit] :
         {std::pair{at::kDouble, 1e-14}, {at::kFloat, 1e-6}, {at::kBFloat16, 3e-3}})
      for (const bool later : {false, true}) {
        SCOPED_TRACE(static_cast<int>(recipe));
        const ExpertInputs in = expert_inputs(type);
        const LinearRounding how = rounding(recipe, *alone);
        const ExpertResult got = together(in, how, later), want = each_by_itself(in, how);
        EXPECT_LE(relative_distance(got.y, want.y), limit);
        EXPECT_LE(relative_distance(got.dx, want.dx), limit);
        EXPECT_LE(relative_distance(got.dw, want.dw), limit);
        EXPECT_EQ(got.dw[1].abs().max().item<double>(), 0);
      }
}

/// What differs from products that are not rounded is the rounding.
TEST(RoundedExperts, AreRounded) {
  const auto alone = comm::make_self_communicator("tp");
  const ExpertInputs in = expert_inputs(at::kDouble);
  const Tensor groups = at::tensor(kRowsOfExperts, at::kLong),
               plain = kernels::grouped_mm(in.x, in.w, groups);
  for (const auto recipe : {LinearRecipe::rowwise, LinearRecipe::mxfp8_rceil}) {
    const ExpertResult got = together(in, rounding(recipe, *alone), false);
    EXPECT_GT(relative_distance(got.y, plain), 1e-3);
    EXPECT_LT(relative_distance(got.y, plain), 0.1);
  }
}

TEST(RoundedExperts, WithoutRowsHaveNoGradients) {
  const auto alone = comm::make_self_communicator("tp");
  for (const auto recipe : {LinearRecipe::rowwise, LinearRecipe::mxfp8_rceil}) {
    WeightGradients gradients;
    const auto options = at::TensorOptions(at::kFloat).device(test::test_device());
    const Tensor x = at::zeros({0, kInputs}, options).requires_grad_(),
                 w = at::ones({kExperts, kOutputs, kInputs}, options).requires_grad_();
    const Tensor groups = kernels::row_groups(at::zeros({kExperts}, at::kLong), x);
    const Tensor y = rounded_expert_linear(x, w, groups, rounding(recipe, *alone), gradients);
    y.backward(at::zeros_like(y));
    EXPECT_EQ(x.grad().sizes(), x.sizes());
    EXPECT_EQ(w.grad().abs().max().item<double>(), 0);
  }
}

}  // namespace
}  // namespace tessera::parallel
