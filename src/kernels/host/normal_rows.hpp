// SPDX-License-Identifier: Apache-2.0
// The quantile of the normal distribution and runs of initial values, for each instruction set.
// Files that include it are compiled with -ffp-contract=off, and it calls nothing of the
// mathematical library: each has the same bits.
#pragma once

#include "host_device.hpp"
#include "normal.hpp"
#include "numbers.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// The double n < 2^52. AVX2 cannot convert 64-bit integers: adding n to the bits of 2^52 gives
/// 2^52 + n.
TESSERA_HD double double_of(std::uint64_t n) {
  return bits_as<double>(n | std::uint64_t{0x433} << 52) - 0x1p52;
}

/// log(x) of a positive normal number: x = m * 2^e with sqrt(1/2) <= m < sqrt(2), log m = 2
/// artanh((m - 1)/(m + 1)). By integers where a choice would be a branch.
TESSERA_HD double logarithm(double x) {
  constexpr std::uint64_t fraction = 0xfffffffffffffu, root_of_2 = 0x6a09e667f3bcdu;
  const auto bits = bits_as<std::uint64_t>(x);
  const std::uint64_t above = (root_of_2 - (bits & fraction)) >> 63;  // 1 where m is halved
  const double m = bits_as<double>((bits & fraction) | (1023 - above) << 52);
  const double e = double_of((bits >> 52) + above) - 1023.0;
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * z;
  return 2.0 * s * (1.0 + sum) + e * 0.693147180559945309417;
}

/// Horner's rule, highest power first.
template <std::size_t n>
TESSERA_HD double polynomial(const double (&coefficients)[n], double x) {
  double value = coefficients[0];
  for (std::size_t i = 1; i < n; ++i) value = value * x + coefficients[i];
  return value;
}

/// Wichura's rational functions: numerator and denominator for |p - 1/2| <= 0.425, then for r <= 5
/// and beyond.
constexpr double centre_a[] = {2.5090809287301226727e3, 3.3430575583588128105e4,
                               6.7265770927008700853e4, 4.5921953931549871457e4,
                               1.3731693765509461125e4, 1.9715909503065514427e3,
                               1.3314166789178437745e2, 3.3871328727963666080e0};
constexpr double centre_b[] = {5.2264952788528545610e3, 2.8729085735721942674e4,
                               3.9307895800092710610e4, 2.1213794301586595867e4,
                               5.3941960214247511077e3, 6.8718700749205790830e2,
                               4.2313330701600911252e1, 1.0};
constexpr double middle_c[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                               2.41780725177450611770e-1, 1.27045825245236838258e0,
                               3.64784832476320460504e0,  5.76949722146069140550e0,
                               4.63033784615654529590e0,  1.42343711074968357734e0};
constexpr double middle_d[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                               1.51986665636164571966e-2, 1.48103976427480074590e-1,
                               6.89767334985100004550e-1, 1.67638483018380384940e0,
                               2.05319162663775882187e0,  1.0};
constexpr double far_e[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                            1.24266094738807843860e-3, 2.65321895265761230930e-2,
                            2.96560571828504891230e-1, 1.78482653991729133580e0,
                            5.46378491116411436990e0,  6.65790464350110377720e0};
constexpr double far_f[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                            1.84631831751005468180e-5,  7.86869131145613259100e-4,
                            1.48753612908506148525e-2,  1.36929880922735805310e-1,
                            5.99832206555887937690e-1,  1.0};

/// A probability is in the tails beyond this distance from 1/2.
constexpr double centre_width = 0.425;
/// Roots of the logarithm up to which a tail is in the middle.
constexpr double middle_root = 5.0;

/// `q`: the probability less 1/2, at most centre_width from 0.
TESSERA_HD double centre_quantile(double q) {
  const double r = 0.180625 - q * q;
  return q * polynomial(centre_a, r) / polynomial(centre_b, r);
}

TESSERA_HD double tail_root(double tail_probability) {
  return __builtin_sqrt(-logarithm(tail_probability));
}

TESSERA_HD double middle_quantile(double root) {
  return polynomial(middle_c, root - 1.6) / polynomial(middle_d, root - 1.6);
}

TESSERA_HD double far_quantile(double root) {
  return polynomial(far_e, root - 5.0) / polynomial(far_f, root - 5.0);
}

/// (k + 1/2) / 2^52 of the low 52 bits k: every value is exact and neither 0 nor 1.
TESSERA_HD double uniform(std::uint64_t bits) {
  return (double_of(bits & 0xfffffffffffffu) + 0.5) * 0x1p-52;
}

/// The nearest number that has a quantile: rounding may carry a probability to the ends of (0, 1).
TESSERA_HD double inside_unit_interval(double p) {
  constexpr double least = 0x1p-60, most = 1.0 - 0x1p-53;
  return p < least ? least : p > most ? most : p;
}

constexpr std::int64_t normals_at_once = 256;

/// philox4x32() of blocks first to first + count - 1 of a stream: the low half of each. A loop over
/// blocks in each round, which compilers vectorise.
inline void random_bits(const Philox& philox, std::uint64_t first, std::int64_t count,
                        std::uint64_t* out) {
  std::uint32_t c0[normals_at_once], c1[normals_at_once], c2[normals_at_once], c3[normals_at_once];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    c0[i] = static_cast<std::uint32_t>(index);
    c1[i] = static_cast<std::uint32_t>(index >> 32);
    c2[i] = static_cast<std::uint32_t>(philox.stream);
    c3[i] = static_cast<std::uint32_t>(philox.stream >> 32);
  }
  auto key_0 = static_cast<std::uint32_t>(philox.seed);
  auto key_1 = static_cast<std::uint32_t>(philox.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53u} * c0[i];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ key_0;
      c1[i] = static_cast<std::uint32_t>(b);
      c2[i] = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ key_1;
      c3[i] = static_cast<std::uint32_t>(a);
    }
    key_0 += 0x9E3779B9u;
    key_1 += 0xBB67AE85u;
  }
  for (std::int64_t i = 0; i < count; ++i) out[i] = std::uint64_t{c1[i]} << 32 | c0[i];
}

/// Quantiles of `count` <= normals_at_once probabilities. Loops without branches, which compilers
/// vectorise: all as if in the centre, the tails as if in the middle, and what is left.
inline void normal_quantiles(const double* p, std::int64_t count, double* out) {
  double tail[normals_at_once], root[normals_at_once], middle[normals_at_once];
  std::int64_t place[normals_at_once], tails = 0;
  for (std::int64_t i = 0; i < count; ++i) out[i] = centre_quantile(p[i] - 0.5);
  for (std::int64_t i = 0; i < count; ++i) {
    place[tails] = i;
    tail[tails] = p[i];
    tails += __builtin_fabs(p[i] - 0.5) > centre_width;
  }
  for (std::int64_t i = 0; i < tails; ++i) {
    const double other = 1.0 - tail[i];
    root[i] = tail_root(tail[i] < 0.5 ? tail[i] : other);
    middle[i] = middle_quantile(root[i]);
  }
  for (std::int64_t i = 0; i < tails; ++i) {
    const double value = root[i] <= middle_root ? middle[i] : far_quantile(root[i]);
    out[place[i]] = tail[i] < 0.5 ? -value : value;
  }
}

inline void draw_normals(const Philox& philox, std::uint64_t first, std::int64_t count,
                         const CutNormal& n, double* out) {
  const double width = n.probability_high - n.probability_low;
  std::uint64_t bits[normals_at_once];
  double p[normals_at_once];
  for (std::int64_t begin = 0; begin < count; begin += normals_at_once) {
    const std::int64_t left = count - begin;
    const std::int64_t here = left < normals_at_once ? left : normals_at_once;
    random_bits(philox, first + static_cast<std::uint64_t>(begin), here, bits);
    for (std::int64_t i = 0; i < here; ++i)
      p[i] = inside_unit_interval(n.probability_low + uniform(bits[i]) * width);
    double* values = out + begin;
    normal_quantiles(p, here, values);
    for (std::int64_t i = 0; i < here; ++i) {
      const double value = n.mean + n.deviation * values[i];
      values[i] = value < n.low ? n.low : value > n.high ? n.high : value;
    }
  }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
