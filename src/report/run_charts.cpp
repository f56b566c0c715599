// SPDX-License-Identifier: Apache-2.0
#include "run_charts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tessera/metrics/human.hpp"

namespace tessera::report {
namespace {

bool spans_two_powers_of_ten(const std::vector<Series>& series) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Series& s : series)
    for (const Point& p : s.points)
      if (std::isfinite(p.y)) low = std::min(low, p.y), high = std::max(high, p.y);
  return low > 0 && high > 100 * low;
}

}  // namespace

ColumnChart loss_chart() { return {.column = "loss", .title = "Loss", .smooth = true}; }

ColumnChart rate_chart() { return {.column = "lr", .title = "Learning rate", .from_zero = true}; }

ColumnChart norm_chart() {
  return {.column = "grad_norm", .title = "Gradient norm, before clipping", .smooth = true};
}

ColumnChart speed_chart() {
  return {.column = "tokens_per_second",
          .title = "Throughput, tokens per second",
          .smooth = true,
          .from_zero = true,
          .format = tokens_per_second};
}

Html drawn(const ColumnChart& what, std::vector<Series> series, std::vector<Mark> marks) {
  const bool log = what.column == "grad_norm" && spans_two_powers_of_ten(series);
  return line_chart({.title = std::string(what.title),
                     .series = std::move(series),
                     .log_y = log,
                     .smooth = what.smooth,
                     .from_zero = what.from_zero,
                     .marks = std::move(marks),
                     .format = what.format});
}

std::string tokens_per_second(double value) { return metrics::human_count(value); }

}  // namespace tessera::report
