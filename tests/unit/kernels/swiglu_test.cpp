// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/swiglu.hpp"

#include <array>

#include "tessera/base/error.hpp"
#include "tessera/kernels/joined.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

at::Tensor twin(const std::vector<at::Tensor>& in) { return at::silu(in[0]) * in[1]; }
at::Tensor kernel(const std::vector<at::Tensor>& in) { return swiglu(in[0], in[1]); }

TEST(Swiglu, EqualsItsTwin) {
  at::manual_seed(2);
  for (const auto dtype : dtypes)
    for (const std::int64_t width : {1, 13, 96})
      expect_twins(kernel, twin, {random({5, 9, width}, dtype, 3.0), random({5, 9, width}, dtype)});
}

TEST(Swiglu, ReadsViewsInPlaceAndTransposedOnesToo) {
  const auto both = random({4, 6, 32}, at::kFloat);
  const auto halves = both.chunk(2, -1);
  EXPECT_TRUE(at::equal(swiglu(halves[0], halves[1]),
                        swiglu(halves[0].contiguous(), halves[1].contiguous())));
  const auto t = both.transpose(0, 1);
  EXPECT_TRUE(at::equal(swiglu(t, t), swiglu(t.contiguous(), t.contiguous())));
}

TEST(Swiglu, GradientsOfHalvesAreHalves) {
  for (const auto dtype : dtypes)
    for (const std::int64_t width : {1, 13, 96}) {
      auto halves = columns_of(random({7, 2 * width}, dtype), std::array{width, width});
      std::vector<at::Tensor> apart;
      for (const at::Tensor& half : halves)
        apart.push_back(half.clone(at::MemoryFormat::Contiguous));
      const at::Tensor dy = random({7, width}, dtype);
      const auto gradients = [&](std::vector<at::Tensor>& in) {
        for (at::Tensor& x : in) x.requires_grad_();
        return torch::autograd::grad({swiglu(in[0], in[1])}, in, {dy});
      };
      const auto of_halves = gradients(halves), wanted = gradients(apart);
      EXPECT_TRUE(are_neighbours(of_halves));
      for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(of_halves[i], wanted[i]));
    }
}

TEST(Swiglu, KeepsTheEdges) {
  const float inf = std::numeric_limits<float>::infinity();
  const auto gate =
      at::tensor({-inf, -200.0F, -88.0F, 0.0F, 200.0F, inf, std::nanf("")}, options());
  const auto y = swiglu(gate, at::ones({7}, options()));
  EXPECT_TRUE(std::isnan(y[0].item<float>()));  // -inf * 0, as silu has it
  EXPECT_EQ(y[1].item<float>(), 0.0F);
  EXPECT_NEAR(y[2].item<float>(), 0.0F, 1e-30);
  EXPECT_EQ(y[3].item<float>(), 0.0F);
  EXPECT_EQ(y[4].item<float>(), 200.0F);
  EXPECT_EQ(y[5].item<float>(), inf);
  EXPECT_TRUE(std::isnan(y[6].item<float>()));
}

TEST(Swiglu, RefusesWhatDoesNotFit) {
  EXPECT_THROW(swiglu(at::ones({2, 8}), at::ones({2, 7})), ContractViolation);
}

constexpr double alpha = 1.702, limit = 2;

at::Tensor clamped(const std::vector<at::Tensor>& in) {
  return clamped_gate(in[0], in[1], alpha, limit);
}
at::Tensor clamped_twin(const std::vector<at::Tensor>& in) {
  const at::Tensor g = in[0].clamp_max(limit);
  return (in[1].clamp(-limit, limit) + 1) * (g * at::sigmoid(alpha * g));
}

/// Some values on either side of the limits.
TEST(ClampedGate, EqualsItsTwin) {
  at::manual_seed(5);
  for (const auto dtype : dtypes)
    for (const std::int64_t width : {0, 1, 13, 96}) {
      const at::Tensor gate = random({5, 9, width}, dtype, 3.0),
                       up = random({9, 5, width}, dtype, 3.0);
      expect_twins(clamped, clamped_twin, {gate, up.transpose(0, 1)});
    }
}

TEST(ClampedGate, HasNoGradientBeyondItsLimits) {
  const float inf = std::numeric_limits<float>::infinity(),
              most = std::numeric_limits<float>::max(), nan = std::nanf("");
  const auto gate =
      at::tensor({inf, 2.1F, 2.0F, 1.0F, 1.0F, -200.0F, nan, 1.0F, -most, 1.0F}, options())
          .requires_grad_();
  const auto up =
      at::tensor({1.0F, 1.0F, 2.0F, 2.1F, -inf, 1.0F, 1.0F, nan, 1.0F, -2.0F}, options())
          .requires_grad_();
  const auto y = clamped({gate, up});
  torch::autograd::backward({y}, {at::ones_like(y)});
  const at::Tensor of_gate = gate.grad().cpu(), of_up = up.grad().cpu();
  for (const int i : {0, 1, 5, 8}) EXPECT_EQ(of_gate[i].item<float>(), 0) << i;
  for (const int i : {2, 3}) EXPECT_GT(of_gate[i].item<float>(), 1) << i;
  for (const int i : {3, 4, 5, 8}) EXPECT_EQ(of_up[i].item<float>(), 0) << i;
  for (const int i : {2, 9}) EXPECT_GT(of_up[i].item<float>(), 0.8) << i;
  for (const int i : {6, 7}) EXPECT_TRUE(std::isnan(of_gate[i].item<float>())) << i;
  EXPECT_NEAR(y.detach()[4].item<float>(), -1 / (1 + std::exp(-alpha)), 1e-6);
  EXPECT_TRUE(std::isnan(y.detach()[6].item<float>()));
}

TEST(ClampedGate, RefusesWhatDoesNotFit) {
  EXPECT_THROW(clamped({at::ones({2, 8}), at::ones({2, 7})}), ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
