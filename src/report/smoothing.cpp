// SPDX-License-Identifier: Apache-2.0
#include "smoothing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera::report {
namespace {

struct Sums {
  std::vector<double> value{0};
  std::vector<std::int64_t> count{0};
};

/// Running sums of the finite values: entry i is over the first i.
Sums running_sums(std::span<const double> values) {
  Sums sums;
  for (const double value : values) {
    const bool counts = std::isfinite(value);
    sums.value.push_back(sums.value.back() + (counts ? value : 0));
    sums.count.push_back(sums.count.back() + (counts ? 1 : 0));
  }
  return sums;
}

/// The part of the points that falls into one column: its extremes, or one gap where it has no
/// finite value.
void append_extremes(std::span<const Point> part, std::vector<Point>& out) {
  const Point* low = nullptr;
  const Point* high = nullptr;
  for (const Point& p : part) {
    if (!std::isfinite(p.y)) continue;
    if (low == nullptr || p.y < low->y) low = &p;
    if (high == nullptr || p.y > high->y) high = &p;
  }
  if (low == nullptr) return out.push_back(part.front());
  out.push_back(*std::min(low, high));
  if (low != high) out.push_back(*std::max(low, high));
}

}  // namespace

std::vector<double> moving_mean(std::span<const double> values, std::size_t half) {
  const Sums sums = running_sums(values);
  std::vector<double> means(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t left = std::min(half, i);
    const std::size_t begin = i - left;
    const std::size_t end = std::min(values.size(), i + left + 1);
    const auto count = sums.count[end] - sums.count[begin];
    means[i] = count > 0 ? (sums.value[end] - sums.value[begin]) / static_cast<double>(count)
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return means;
}

std::vector<double> smooth(std::span<const double> values, std::size_t half) {
  return moving_mean(moving_mean(values, half), half);
}

std::vector<Point> thin(std::span<const Point> points, std::size_t columns) {
  if (points.size() <= 2 * columns) return {points.begin(), points.end()};
  const double first = points.front().x;
  const double per_x = static_cast<double>(columns) / (points.back().x - first);
  std::vector<Point> out;
  for (auto begin = points.begin(); begin != points.end();) {
    const double column = std::floor((begin->x - first) * per_x);
    const auto end = std::find_if(begin, points.end(), [&](const Point& p) {
      return std::floor((p.x - first) * per_x) > column;
    });
    append_extremes({begin, end}, out);
    begin = end;
  }
  return out;
}

}  // namespace tessera::report
