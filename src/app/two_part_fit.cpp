// SPDX-License-Identifier: Apache-2.0
#include "two_part_fit.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::app {
namespace {

constexpr double kNoTime = 1e-15;  // seconds of a unit

double rate_of(double seconds) { return 1 / std::max(seconds, kNoTime); }

}  // namespace

TwoRates fit_two_rates(const std::vector<TimedWork>& works, const TwoRates& usual) {
  // Each work is the equation a x + b y = 1, in amounts for each second that it took.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  const auto add = [&](double first, double second, double weight) {
    aa += weight * first * first;
    ab += weight * first * second;
    bb += weight * second * second;
    a += weight * first;
    b += weight * second;
  };
  for (const TimedWork& work : works) add(work.first / work.seconds, work.second / work.seconds, 1);
  constexpr double kWeightOfUsual = 0.02;
  add(usual.first, 0, kWeightOfUsual);
  add(0, usual.second, kWeightOfUsual);
  const double determinant = aa * bb - ab * ab;
  double x = (a * bb - b * ab) / determinant;
  double y = (b * aa - a * ab) / determinant;
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
