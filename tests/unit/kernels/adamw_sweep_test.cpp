// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>

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
  void sweep(const AdamWScalars& s, const at::Tensor& copy = {},
             const StochasticRounding* rounding = nullptr) const {
    adamw_sweep(param, grad, exp_avg, exp_avg_sq, s, copy, rounding);
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
  at::Tensor g = wide(s.grad) * a.gradient_scale;
  if (a.coupled_decay) g = g + a.weight_decay * wide(s.param);
  const double decay = a.coupled_decay ? 1 : 1 - a.lr * a.weight_decay;
  const at::Tensor m = wide(s.exp_avg).lerp(g, 1 - a.beta1);
  const at::Tensor v = wide(s.exp_avg_sq) * a.beta2 + (1 - a.beta2) * g * g;
  const at::Tensor denominator = v.sqrt() / std::sqrt(a.bias_correction2) + a.eps;
  return {wide(s.param) * decay - a.lr / a.bias_correction1 * m / denominator, g, m, v};
}

TEST(AdamWSweep, EqualsItsTwinInEveryDtype) {
  at::manual_seed(17);
  const at::ScalarType kinds[][3] = {
      {at::kDouble, at::kDouble, at::kDouble},      {at::kFloat, at::kFloat, at::kFloat},
      {at::kFloat, at::kBFloat16, at::kFloat},      {at::kFloat, at::kFloat, at::kBFloat16},
      {at::kFloat, at::kBFloat16, at::kBFloat16},   {at::kBFloat16, at::kFloat, at::kFloat},
      {at::kBFloat16, at::kBFloat16, at::kFloat},   {at::kBFloat16, at::kFloat, at::kBFloat16},
      {at::kBFloat16, at::kBFloat16, at::kBFloat16}};
  for (const auto& kind : kinds)
    for (const std::int64_t count : {1, 17, 40003})
      for (const bool adam : {false, true}) {
        AdamWScalars with = scalars;
        with.coupled_decay = adam;
        const State s = State::random_of(count, kind[0], kind[1], kind[2]);
        const State want = in_doubles(s, with);
        s.sweep(with);
        expect_close(s.param, want.param,
                     kind[0] == at::kDouble  ? 1e-14
                     : kind[0] == at::kFloat ? 1e-7
                                             : tolerance(at::kBFloat16));
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
  EXPECT_THROW(adamw_sweep(s.param, s.grad.to(at::kDouble), s.exp_avg, s.exp_avg_sq, scalars),
               ContractViolation);
  EXPECT_THROW(adamw_sweep(s.param.to(at::kHalf), s.grad, s.exp_avg, s.exp_avg_sq, scalars),
               ContractViolation);
  const at::Tensor copy = at::empty({8}, options(at::kBFloat16));
  EXPECT_THROW(
      adamw_sweep(s.param.to(at::kBFloat16), s.grad, s.exp_avg, s.exp_avg_sq, scalars, copy),
      ContractViolation);
  const StochasticRounding outside{1, {8}, {{1}, {8}}}, other{1, {9}, {{0}, {9}}};
  for (const StochasticRounding* rounding : {&outside, &other})
    EXPECT_THROW(
        adamw_sweep(s.param, s.grad, s.exp_avg, s.exp_avg_sq, scalars, at::Tensor(), rounding),
        ContractViolation);
}

/// Philox2x32-10, written a second time.
std::array<std::uint32_t, 2> philox2x32(std::uint32_t x, std::uint32_t y, std::uint32_t key) {
  for (std::uint32_t round = 0; round < 10; ++round) {
    const std::uint64_t wide = 3528905107ULL * x;
    x = std::uint32_t(wide / 4294967296ULL) ^ y ^ (key + round * 2654435769U);
    y = std::uint32_t(wide % 4294967296ULL);
  }
  return {x, y};
}

/// `exact`, f32, rounded by 16 bits of the elements from number `first` on: those from `shift` on,
/// of 64.
at::Tensor rounded(const at::Tensor& exact, std::uint64_t key, std::int64_t first, int shift) {
  const at::Tensor host = exact.cpu().contiguous(), made = at::empty_like(host);
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    const auto number = static_cast<std::uint64_t>(first + i);
    const auto random =
        philox2x32(std::uint32_t(number), std::uint32_t(number >> 32) ^ std::uint32_t(key >> 32),
                   std::uint32_t(key));
    const std::uint64_t bits = random[0] | std::uint64_t{random[1]} << 32;
    const auto value = std::bit_cast<std::uint32_t>(host.const_data_ptr<float>()[i]);
    const std::uint32_t cut = (value + std::uint32_t(bits >> shift & 0xffff)) & 0xffff0000U;
    made.mutable_data_ptr<float>()[i] = std::bit_cast<float>(cut);
  }
  return made.to(at::kBFloat16).to(exact.device());
}

TEST(AdamWSweep, RoundsByTheKnownGenerator) {
  // From kat_vectors of Random123 1.14.
  EXPECT_EQ(philox2x32(0, 0, 0), (std::array{0xff1dae59U, 0x6cd10df2U}));
  EXPECT_EQ(philox2x32(0x243f6a88, 0x85a308d3, 0x13198a2e), (std::array{0xdd7ce038U, 0xf62a4c12U}));
  at::manual_seed(19);
  const std::int64_t first = (std::int64_t{1} << 33) - 700, whole = std::int64_t{1} << 34;
  const StochasticRounding rounding{0x0123456789abcdefULL, {whole}, {{first}, {1403}}};
  const auto wide = [](const at::Tensor& t) { return t.to(at::kFloat, false, /*copy=*/true); };
  for (const auto param : {at::kFloat, at::kBFloat16})
    for (const auto grad : {at::kFloat, at::kBFloat16})
      for (const auto moments : {at::kFloat, at::kBFloat16}) {
        const State s = State::random_of(1403, param, grad, moments);
        const State exact{wide(s.param), s.grad.clone(), wide(s.exp_avg), wide(s.exp_avg_sq)};
        const bool master = param == at::kFloat;
        const at::Tensor copy = master ? at::empty({1403}, options(at::kBFloat16)) : at::Tensor();
        exact.sweep(scalars);
        s.sweep(scalars, copy, &rounding);
        const auto expected = [&](const at::Tensor& value, at::ScalarType type, int shift) {
          return type == at::kFloat ? value : rounded(value, rounding.key, first, shift);
        };
        EXPECT_TRUE(at::equal(s.param, expected(exact.param, param, 0)));
        EXPECT_TRUE(at::equal(s.exp_avg, expected(exact.exp_avg, moments, 16)));
        EXPECT_TRUE(at::equal(s.exp_avg_sq, expected(exact.exp_avg_sq, moments, 32)));
        if (master) {
          EXPECT_TRUE(at::equal(copy, exact.param.to(at::kBFloat16)));
        }
      }
}

TEST(AdamWSweep, RoundsShardsAsTheWhole) {
  at::manual_seed(20);
  const Shape whole{5, 6, 14};
  const auto seen = [&](const State& s) {
    const auto view = [&](const at::Tensor& t) { return t.view(whole); };
    return State{view(s.param), view(s.grad), view(s.exp_avg), view(s.exp_avg_sq)};
  };
  const State begin = seen(State::random_of(420, at::kBFloat16, at::kFloat, at::kBFloat16));
  const State all = begin.clone();
  const StochasticRounding of_all{77, whole, tessera::whole(whole)};
  all.sweep(scalars, {}, &of_all);
  for (const Box& box :
       {Box{{2, 0, 0}, {3, 6, 14}}, Box{{0, 2, 0}, {5, 3, 14}}, Box{{0, 0, 5}, {5, 6, 9}},
        Box{{1, 3, 7}, {4, 2, 7}}, Box{{4, 5, 13}, {1, 1, 1}}, Box{{1, 2, 3}, {3, 1, 8}},
        Box{{0, 3, 0}, {2, 0, 14}}}) {
    const auto cut = [&](const State& s) {
      const auto part = [&](at::Tensor t) {
        for (std::int64_t dim = 0; dim < 3; ++dim)
          t = t.narrow(dim, box.offset[std::size_t(dim)], box.extent[std::size_t(dim)]);
        return t.clone(at::MemoryFormat::Contiguous);
      };
      return State{part(s.param), part(s.grad), part(s.exp_avg), part(s.exp_avg_sq)};
    };
    const State shard = cut(begin), want = cut(all);
    const StochasticRounding rounding{77, whole, box};
    shard.sweep(scalars, {}, &rounding);
    EXPECT_TRUE(at::equal(shard.param, want.param)) << to_string(box);
    EXPECT_TRUE(at::equal(shard.exp_avg, want.exp_avg)) << to_string(box);
    EXPECT_TRUE(at::equal(shard.exp_avg_sq, want.exp_avg_sq)) << to_string(box);
  }
}

/// Each update is a 512th of the distance of two numbers in bf16 there.
TEST(AdamWSweep, LosesNoSmallUpdateInTheMean) {
  constexpr std::int64_t count = 4096;
  constexpr int steps = 256;
  const auto trained = [](bool randomly) {
    State s{at::ones({count}, options(at::kBFloat16)), at::ones({count}, options(at::kFloat)),
            at::ones({count}, options(at::kFloat)), at::ones({count}, options(at::kFloat))};
    const AdamWScalars small{.lr = 0x1p-17, .eps = 0};
    for (std::uint64_t step = 0; step < steps; ++step) {
      const StochasticRounding rounding{step, {count}, {{0}, {count}}};
      s.sweep(small, {}, randomly ? &rounding : nullptr);
    }
    return 1 - exact(s.param).mean().item<double>();
  };
  EXPECT_EQ(trained(false), 0);
  EXPECT_NEAR(trained(true), steps * 0x1p-17, 5 * 0x1p-8 * std::sqrt(steps / 512. / count));
}

TEST(AdamWSweep, KeepsWhatIsNoNumber) {
  const double inf = std::numeric_limits<double>::infinity(), nan = inf - inf;
  const State s{at::tensor({1., 2., inf, -inf}).to(options(at::kBFloat16)),
                at::tensor({nan, 0., 0., 0.}).to(options()), at::zeros({4}, options(at::kFloat)),
                at::ones({4}, options(at::kFloat))};
  const StochasticRounding rounding{5, {4}, {{0}, {4}}};
  s.sweep(scalars, {}, &rounding);
  const at::Tensor param = s.param.to(at::kFloat).cpu();
  EXPECT_TRUE(std::isnan(param[0].item<float>()));
  EXPECT_TRUE(std::isfinite(param[1].item<float>()));
  EXPECT_EQ(param[2].item<float>(), inf);
  EXPECT_EQ(param[3].item<float>(), -inf);
}

}  // namespace
}  // namespace tessera::kernels::test
