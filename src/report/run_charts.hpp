// SPDX-License-Identifier: Apache-2.0
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

/// The series over the step. The axis of gradient norms is logarithmic where they span more than
/// two powers of ten.
Html drawn(const ColumnChart& what, std::vector<Series> series, std::vector<Mark> marks = {});

/// "step 12 of 100" and the like need no fractions: 1.23M tok/s.
std::string tokens_per_second(double value);

}  // namespace tessera::report
