// SPDX-License-Identifier: Apache-2.0
// Compiled with -ffp-contract=off, and calls nothing of the mathematical library: see
// CMakeLists.txt.
#include "normal.hpp"

#include <bit>

#define TESSERA_ISA_NAMESPACE plain
#include "host/normal_rows.hpp"
#undef TESSERA_ISA_NAMESPACE

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

double tail_quantile(double tail_probability) {
  const double root = plain::tail_root(tail_probability);
  return root <= plain::middle_root ? plain::middle_quantile(root) : plain::far_quantile(root);
}

}  // namespace

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (q >= -plain::centre_width && q <= plain::centre_width) return plain::centre_quantile(q);
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

}  // namespace tessera::kernels
