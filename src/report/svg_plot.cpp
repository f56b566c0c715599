// SPDX-License-Identifier: Apache-2.0
#include "svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tessera::report {

double tick_step(double low, double high, int count, double smallest) {
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (rough <= factor * power * 1.0001) step = factor * power;
  return std::max(step, smallest);
}

std::vector<double> ticks(double low, double high, double step) {
  constexpr int most = 100;
  std::vector<double> values;
  const double slack = 1e-9 * step;
  const double first = std::ceil((low - slack) / step), last = std::floor((high + slack) / step);
  // Counted in an int: at 1e17 and beyond adding 1 to a double does nothing.
  for (int i = 0; i < most && first + i <= last; ++i)
    values.push_back((first + i) * step + 0.0);  // -0 becomes 0
  return values;
}

std::string tick_label(double value, double step) {
  if (std::abs(value) >= 1e6) return fmt::format("{:g}", value);
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string count_label(double value) {
  if (value >= 1e9) return fmt::format("{:g}B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

std::string path_data(std::span<const Point> points, const Scale& x, const Scale& y) {
  std::string data;
  bool down = false;
  for (const Point& p : points) {
    const bool finite = std::isfinite(p.y);
    // Far outside of any picture, yet within what renderers can count.
    const double pixel = std::clamp(y(p.y), -1e5, 1e5);
    if (finite)
      fmt::format_to(std::back_inserter(data), "{}{:.1f} {:.1f}", down ? 'L' : 'M', x(p.x), pixel);
    down = finite;
  }
  return data;
}

}  // namespace tessera::report
