// SPDX-License-Identifier: Apache-2.0
// Compiled with -ffp-contract=off, and calls nothing of the mathematical library: see
// CMakeLists.txt.
#include "normal.hpp"

#include <bit>
#include <cmath>

namespace tessera::kernels {
namespace {

constexpr double ln2 = 0.693147180559945309417;

/// exp(x) for -700 < x <= 0: 2^n times the Taylor polynomial of degree 13.
double exponential(double x) {
  const double n = static_cast<double>(static_cast<std::int64_t>(x / ln2 - 0.5));
  const double r = (x - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
  double term = 1.0, sum = 1.0;
  for (int k = 1; k <= 13; ++k) {
    term = term * r / k;
    sum += term;
  }
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + static_cast<std::int64_t>(n))
                                     << 52);
}

/// log(x) of a positive normal number: x = m * 2^e with sqrt(1/2) <= m < sqrt(2), log m = 2
/// artanh((m - 1)/(m + 1)).
double logarithm(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto e = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | (std::uint64_t{1023} << 52));
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++e;
  }
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * z;
  return 2.0 * s * (1.0 + sum) + static_cast<double>(e) * ln2;
}

/// Horner's rule, highest power first.
template <std::size_t n>
double polynomial(const double (&coefficients)[n], double x) {
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

double tail_quantile(double tail_probability) {
  const double r = std::sqrt(-logarithm(tail_probability));
  if (r <= 5.0) return polynomial(middle_c, r - 1.6) / polynomial(middle_d, r - 1.6);
  return polynomial(far_e, r - 5.0) / polynomial(far_f, r - 5.0);
}

/// The nearest number that normal_quantile takes: rounding may carry a probability to the ends of
/// (0, 1).
double inside_unit_interval(double p) {
  constexpr double least = 0x1p-60, most = 1.0 - 0x1p-53;
  return p < least ? least : p > most ? most : p;
}

/// (k + 1/2) / 2^52 of the low 52 bits k: every value is exact and neither 0 nor 1.
double uniform(const PhiloxBlock& block) {
  const std::uint64_t k = (std::uint64_t{block[1]} << 32 | block[0]) & 0xfffffffffffffu;
  return (static_cast<double>(k) + 0.5) * 0x1p-52;
}

}  // namespace

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(centre_a, r) / polynomial(centre_b, r);
  }
  return q < 0.0 ? -tail_quantile(p) : tail_quantile(1.0 - p);
}

double normal_cdf(double x) {
  if (x < -8.25) return 0.0;
  if (x > 8.25) return 1.0;
  double sum = x, previous = 0.0, term = x;
  for (double i = 3.0; sum != previous; i += 2.0) {
    previous = sum;
    term = term * (x * x) / i;
    sum += term;
  }
  const double p = 0.5 + sum * (exponential(-0.5 * (x * x)) * 0.39894228040143267794);
  return p < 0.0 ? 0.0 : p > 1.0 ? 1.0 : p;
}

CutNormal cut_normal(double mean, double deviation, double low, double high) {
  return {mean,
          deviation,
          low,
          high,
          normal_cdf((low - mean) / deviation),
          normal_cdf((high - mean) / deviation)};
}

void draw_normals(const Philox& philox, std::uint64_t first, std::int64_t count, const CutNormal& n,
                  double* out) {
  const double width = n.probability_high - n.probability_low;
  for (std::int64_t i = 0; i < count; ++i) {
    const double p =
        n.probability_low + uniform(philox.block(first + static_cast<std::uint64_t>(i))) * width;
    const double value = n.mean + n.deviation * normal_quantile(inside_unit_interval(p));
    out[i] = value < n.low ? n.low : value > n.high ? n.high : value;
  }
}

}  // namespace tessera::kernels
