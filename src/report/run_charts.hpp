// The charts that the pages of one run and of several runs have in common.
#pragma once

#include <string_view>
#include <vector>

#include "tessera/report/chart.hpp"
#include "tessera/report/run.hpp"

namespace tessera::report {

/// How a column of metrics.jsonl is drawn.
struct ColumnChart {
  std::string_view column, title;
  bool smooth = false;
  bool from_zero = false;
  std::string (*format)(double) = short_number;
};

ColumnChart loss_chart();
ColumnChart rate_chart();
ColumnChart norm_chart();
ColumnChart speed_chart();

/// A logarithmic axis where the values span more than two powers of ten, and none is zero.
bool wants_log(const std::vector<Series>& series);

/// "step 12 of 100" and the like need no fractions: 1.23M tok/s.
std::string tokens_per_second(double value);

}  // namespace tessera::report
