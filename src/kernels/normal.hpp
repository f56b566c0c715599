// SPDX-License-Identifier: Apache-2.0
// The normal distribution by +, -, *, / and sqrt alone: the same bits from every compiler and
// machine.
#pragma once

#include <cstdint>

#include "tessera/kernels/philox.hpp"

namespace tessera::kernels {

/// Quantile of the standard normal for 0 < p < 1 (Wichura 1988, AS 241 PPND16).
double normal_quantile(double p);
/// Its inverse (Marsaglia 2004), to about 1e-15 absolute.
double normal_cdf(double x);

/// A normal distribution between two values, with the probabilities below them.
struct CutNormal {
  double mean, deviation, low, high;
  double probability_low, probability_high;
};

CutNormal cut_normal(double mean, double deviation, double low, double high);

}  // namespace tessera::kernels
