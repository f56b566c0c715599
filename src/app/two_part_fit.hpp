// SPDX-License-Identifier: Apache-2.0
// Times that are sums of two parts, as FLOPs at one rate and bytes at another.
#pragma once

#include <vector>

namespace tessera::app {

struct TimedWork {
  double first = 0, second = 0;  ///< amounts
  double seconds = 0;
};

/// Units a second of each part.
struct TwoRates {
  double first = 0, second = 0;
};

/// The rates with the least sum of squared relative errors. `usual` counts as a fiftieth of a work
/// for each rate: it decides where works do not tell the parts from each other. A part that takes
/// no time gets the rate 1e15. `works`: at least one; all amounts and usual rates are above 0.
TwoRates fit_two_rates(const std::vector<TimedWork>& works, const TwoRates& usual);

}  // namespace tessera::app
