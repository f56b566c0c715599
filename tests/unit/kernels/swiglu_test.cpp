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

}  // namespace
}  // namespace tessera::kernels::test
