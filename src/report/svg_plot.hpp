// SPDX-License-Identifier: Apache-2.0
// Axes, ticks and paths: what any plot needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smoothing.hpp"

namespace tessera::report {

/// A straight line through two pairs: data -> pixels.
struct Scale {
  double from_low, from_high, to_low, to_high;
  double operator()(double value) const {
    return to_low + (value - from_low) / (from_high - from_low) * (to_high - to_low);
  }
};

/// Distance of ticks: 1, 2 or 5 times a power of ten, so that about `count` fit into high - low >
/// 0; at least `smallest`.
double tick_step(double low, double high, int count, double smallest = 0);
/// Multiples of `step` in [low, high].
std::vector<double> ticks(double low, double high, double step);
/// With as many decimals as `step` needs.
std::string tick_label(double value, double step);
/// 250, 1k, 2.5k, 1M.
std::string count_label(double value);

/// The `d` of a <path>, a tenth of a pixel exact; gaps lift the pen.
std::string path_data(std::span<const Point> points, const Scale& x, const Scale& y);

}  // namespace tessera::report
