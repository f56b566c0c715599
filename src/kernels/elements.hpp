// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the kernels on one element, written once. V is float or double, or on the host
// a vector of them.
#pragma once

#include "numbers.hpp"
#include "row_types.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// exp's constants: ln 2 = ln2_high + ln2_low with so few bits in the first that n * ln2_high is
/// exact for every exponent n; `round` + x has x's nearest integer in its low bits. The polynomial
/// of float32 has the least relative error, 4e-9, of those that begin with 1 + r (Remez); that of
/// float64 is Taylor's.
template <class S>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float lowest = -87.3F, highest = 88.3F, round = 12582912.0F;
  static constexpr float ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  static constexpr int mantissa_bits = 23, exponent_bias = 127, degree = 6;
  static TESSERA_HD constexpr float coefficient(int power) {
    constexpr float of_powers[] = {1.0F,
                                   1.0F,
                                   0.499999934478F,
                                   0.166665206317F,
                                   0.0416683880453F,
                                   0.00836871687973F,
                                   0.00138145986467F};
    return of_powers[power];
  }
};
template <>
struct ExpConstants<double> {
  static constexpr double lowest = -708.0, highest = 709.0, round = 6755399441055744.0;
  static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
  static constexpr int mantissa_bits = 52, exponent_bias = 1023, degree = 13;
  static TESSERA_HD constexpr double coefficient(int power) {
    double factorial = 1;
    for (int k = 2; k <= power; ++k) factorial *= k;
    return 1 / factorial;
  }
};

/// p 2^n for whole numbers n; 0 where x < lowest.
template <class V, class S>
TESSERA_HD V scaled_or_zero(V p, V n, V x, S lowest) {
  using Bits = typename ElementOf<V>::Bits;
  using C = ExpConstants<S>;
  const V zero{};
  const Bits exponent =
      bits_as<Bits>(n + C::round) - bits_as<Bits>(zero + C::round) + C::exponent_bias;
  const V y = p * bits_as<V>(Bits(exponent << C::mantissa_bits));
  return x < lowest ? zero : y;
}

/// exp(x) to about 1 ulp for x up to `highest`, above which it means nothing: 2^n times a
/// polynomial in |r| <= ln(2)/2. 0 below `lowest`; a NaN stays one.
template <class V>
TESSERA_HD V bounded_exponential(V x) {
  using S = typename ElementOf<V>::Scalar;
  using C = ExpConstants<S>;
  const V zero{};
  const V n = fma(x, zero + S(1.44269504088896340736), zero + C::round) - C::round;
  V r = fma(n, zero - C::ln2_high, x);
  r = fma(n, zero - C::ln2_low, r);
  V p = zero + C::coefficient(C::degree);
  for (int k = C::degree - 1; k >= 0; --k) p = fma(p, r, zero + C::coefficient(k));
  return scaled_or_zero(p, n, x, C::lowest);
}

/// The same for every x: infinity above `highest`.
template <class V>
TESSERA_HD V exponential(V x) {
  using S = typename ElementOf<V>::Scalar;
  return x > ExpConstants<S>::highest ? V{} + S(__builtin_inf()) : bounded_exponential(x);
}

#if defined(__CUDA_ARCH__)
/// CUDA's own are as exact and rest on the hardware's power of two.
TESSERA_HD float exponential(float x) { return ::expf(x); }
TESSERA_HD double exponential(double x) { return ::exp(x); }
#endif

template <class V>
TESSERA_HD V sigmoid(V x) {
  return reciprocal(1 + exponential(-x));
}

/// dx of y = x * rstd * weight; projection = rstd^3 * mean(dy * weight * x).
template <class V>
TESSERA_HD V rms_norm_gradient(V dy_weight, V x, V rstd, V projection) {
  return fma(dy_weight, rstd, -(x * projection));
}

template <class S>
struct AdamWConstants {
  S gradient_scale, coupled_decay, decay, one_minus_beta1, beta2, one_minus_beta2, root_correction2,
      eps, step;
};

template <class S>
TESSERA_HD AdamWConstants<S> adamw_constants(const AdamWArguments& a) {
  return {S(a.gradient_scale), S(a.coupled_decay),    S(a.decay), S(1 - a.beta1), S(a.beta2),
          S(1 - a.beta2),      S(a.root_correction2), S(a.eps),   S(a.step)};
}

template <class V>
struct AdamWState {
  V param, exp_avg, exp_avg_sq;
};

template <class V, class S>
TESSERA_HD AdamWState<V> adamw_element(AdamWState<V> s, V grad, const AdamWConstants<S>& c) {
  const V zero{};
  V g = grad * c.gradient_scale;
  if (c.coupled_decay != 0) g = fma(s.param, zero + c.coupled_decay, g);
  s.exp_avg = fma(g - s.exp_avg, zero + c.one_minus_beta1, s.exp_avg);
  s.exp_avg_sq = fma(g * g, zero + c.one_minus_beta2, s.exp_avg_sq * c.beta2);
  const V denominator = square_root(s.exp_avg_sq) / c.root_correction2 + c.eps;
  s.param = fma(s.exp_avg / denominator, zero - c.step, s.param * c.decay);
  return s;
}

/// The constant c with which (v + c) - c rounds v, |v| <= largest, to a grid so coarse that 1024
/// such numbers add without rounding: 1.5 * 2^(k + 10) with 2^k > largest (Rump, Ogita and Oishi
/// 2008). 0 where largest is too big or too small for three such grids.
TESSERA_HD double extraction_constant(double largest) {
  const std::int64_t exponent = bits_as<std::int64_t>(largest) >> 52;
  if (exponent < 100 || exponent > 2030) return 0;
  return 1.5 * bits_as<double>((exponent + 11) << 52);
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
