// SPDX-License-Identifier: Apache-2.0
#include "two_part_fit.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::app {
namespace {

constexpr double kNoTime = 1e-15;  // seconds of a unit

double rate_of(double seconds) { return 1 / std::max(seconds, kNoTime); }

}  // namespace

TwoRates fit_two_rates(const std::vector<TimedWork>& works) {
  // Each work is the equation a x + b y = 1, in amounts for each second that it took.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const TimedWork& work : works) {
    const double first = work.first / work.seconds, second = work.second / work.seconds;
    aa += first * first;
    ab += first * second;
    bb += second * second;
    a += first;
    b += second;
  }
  const double determinant = aa * bb - ab * ab;
  const bool apart = determinant > 1e-9 * aa * bb;
  double x = apart ? (a * bb - b * ab) / determinant : a / aa;
  double y = apart ? (b * aa - a * ab) / determinant : 0;
  if (y < 0) {
    x = a / aa;
    y = 0;
  } else if (x < 0) {
    x = 0;
    y = b / bb;
  }
  return {rate_of(x), rate_of(y)};
}

}  // namespace tessera::app
