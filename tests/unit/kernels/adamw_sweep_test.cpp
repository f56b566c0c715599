// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/error.hpp"
#include "tessera/kernels/adamw.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

struct State {
  at::Tensor param, grad, exp_avg, exp_avg_sq;

  static State random_of(std::int64_t count, at::ScalarType param, at::ScalarType grad,
                         at::ScalarType moments) {
    return {random({count}, param), random({count}, grad), random({count}, moments),
            random({count}, moments).abs()};
  }
  State clone() const { return {param.clone(), grad.clone(), exp_avg.clone(), exp_avg_sq.clone()}; }
  State slice(std::int64_t first, std::int64_t count) const {
    const auto cut = [&](const at::Tensor& t) { return t.narrow(0, first, count).clone(); };
    return {cut(param), cut(grad), cut(exp_avg), cut(exp_avg_sq)};
  }
  void sweep(const AdamWScalars& s, const at::Tensor& copy = {}) const {
    adamw_sweep(param, grad, exp_avg, exp_avg_sq, s, copy);
  }
};

constexpr AdamWScalars scalars{.lr = 3e-3,
                               .eps = 1e-8,
                               .weight_decay = 0.1,
                               .bias_correction1 = 0.271,
                               .bias_correction2 = 0.142625,
                               .gradient_scale = 0.37};

/// PyTorch's single-tensor loop, in f64.
State in_doubles(const State& s, const AdamWScalars& a) {
  const auto wide = [](const at::Tensor& t) { return exact(t).clone(); };
  const at::Tensor g = wide(s.grad) * a.gradient_scale;
  const at::Tensor m = wide(s.exp_avg).lerp(g, 1 - a.beta1);
  const at::Tensor v = wide(s.exp_avg_sq) * a.beta2 + (1 - a.beta2) * g * g;
  const at::Tensor denominator = v.sqrt() / std::sqrt(a.bias_correction2) + a.eps;
  return {wide(s.param) * (1 - a.lr * a.weight_decay) - a.lr / a.bias_correction1 * m / denominator,
          g, m, v};
}

TEST(AdamWSweep, EqualsItsTwinInEveryDtype) {
  at::manual_seed(17);
  const at::ScalarType kinds[][3] = {{at::kDouble, at::kDouble, at::kDouble},
                                     {at::kFloat, at::kFloat, at::kFloat},
                                     {at::kFloat, at::kBFloat16, at::kFloat},
                                     {at::kFloat, at::kFloat, at::kBFloat16},
                                     {at::kFloat, at::kBFloat16, at::kBFloat16}};
  for (const auto& kind : kinds)
    for (const std::int64_t count : {1, 17, 40003}) {
      const State s = State::random_of(count, kind[0], kind[1], kind[2]);
      const State want = in_doubles(s, scalars);
      s.sweep(scalars);
      expect_close(s.param, want.param, kind[0] == at::kDouble ? 1e-14 : 1e-7);
      expect_close(s.exp_avg, want.exp_avg, tolerance(kind[2]));
      expect_close(s.exp_avg_sq, want.exp_avg_sq, tolerance(kind[2]));
    }
}

TEST(AdamWSweep, WritesTheRoundedCopy) {
  const State s = State::random_of(1003, at::kFloat, at::kFloat, at::kFloat);
  const at::Tensor copy = at::empty({1003}, options(at::kBFloat16));
  s.sweep(scalars, copy);
  EXPECT_TRUE(at::equal(copy, s.param.to(at::kBFloat16)));
}

TEST(AdamWSweep, BitsDoNotDependOnThePlace) {
  at::manual_seed(18);
  for (const auto dtype : {at::kDouble, at::kFloat}) {
    const State s = State::random_of(300, dtype, dtype, dtype), all = s.clone();
    all.sweep(scalars);
    for (std::int64_t first = 0; first < 40; ++first)
      for (const std::int64_t count : {1, 5, 23, 130}) {
        const State part = s.slice(first, count);
        part.sweep(scalars);
        EXPECT_TRUE(at::equal(part.param, all.param.narrow(0, first, count)));
        EXPECT_TRUE(at::equal(part.exp_avg, all.exp_avg.narrow(0, first, count)));
        EXPECT_TRUE(at::equal(part.exp_avg_sq, all.exp_avg_sq.narrow(0, first, count)));
      }
  }
}

TEST(AdamWSweep, RefusesWhatDoesNotFit) {
  const State s = State::random_of(8, at::kFloat, at::kFloat, at::kFloat);
  EXPECT_THROW(adamw_sweep(s.param, s.grad.narrow(0, 0, 7), s.exp_avg, s.exp_avg_sq, scalars),
               ContractViolation);
  EXPECT_THROW(adamw_sweep(s.param, s.grad, s.exp_avg.to(at::kBFloat16), s.exp_avg_sq, scalars),
               ContractViolation);
  EXPECT_THROW(adamw_sweep(s.param.to(at::kBFloat16), s.grad, s.exp_avg, s.exp_avg_sq, scalars),
               ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
