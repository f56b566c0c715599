// SPDX-License-Identifier: Apache-2.0
// Curves made fit to be looked at: noise averaged away, points that no pixel can show are dropped.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tessera/report/chart.hpp"

namespace tessera::report {

/// Mean over [i - half, i + half]. At the beginning both sides shrink alike, so that a steep start
/// keeps its place; at the end only the right side is cut, so that the last value is a mean and not
/// the last sample. Non-finite values do not count.
std::vector<double> moving_mean(std::span<const double> values, std::size_t half);

/// moving_mean twice: a window that falls off to both sides, without the corners of a plain mean.
std::vector<double> smooth(std::span<const double> values, std::size_t half);

/// At most two points for each of `columns` equal parts of the x range: the lowest and the highest,
/// in their order; few points stay as they are. x must rise.
std::vector<Point> thin(std::span<const Point> points, std::size_t columns);

}  // namespace tessera::report
