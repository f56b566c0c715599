// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG for a Page, whose style sheet gives them their colors. Numbers under the
// pointer are shown by the style sheet, too: there is no script.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/report/page.hpp"

namespace tessera::report {

struct Point {
  double x = 0;
  double y = 0;  ///< NaN: a gap
};

/// A number for people: four significant digits, 3e-4, 12.3k.
std::string short_number(double value);

struct Series {
  std::string name;
  std::vector<Point> points;  ///< x rises
  bool muted = false;         ///< thin and grey, below the others, not in the legend
};

/// A vertical line, e.g. where a run was resumed.
struct Mark {
  double x = 0;
  std::string label;
};

/// The first eight series that are not muted have colors of their own, later ones are drawn muted.
struct LineChart {
  std::string title;
  std::vector<Series> series;
  std::string x_label = "step";
  bool log_x = false;      ///< points at or below 0 are omitted
  bool log_y = false;      ///< likewise
  bool smooth = false;     ///< each series thin, its moving mean bold
  bool from_zero = false;  ///< y begins at 0
  std::vector<Mark> marks = {};
  /// of y, in the legend and under the pointer
  std::function<std::string(double)> format = short_number;
};

/// Curves over x with axes, and a legend with the last finite value of each. A spike does not
/// flatten the curves: it is cut off at the frame. Long series are thinned to the extremes of each
/// column of pixels. Without a finite value: a frame that says so.
Html line_chart(const LineChart& chart);

/// One axis of parallel coordinates, or one side of a heat map.
struct Dimension {
  std::string name;
  std::vector<std::string> labels = {};  ///< of 0, 1, 2, ...; empty: the values are numbers
  bool log = false;                      ///< of numbers > 0
};

/// One member of a sweep: a value for each dimension.
struct Member {
  std::string name;
  std::vector<double> values;  ///< NaN: not known
};

/// The last dimension is the result. The lower it is, the stronger a member's line; without a
/// result: thin and grey.
struct ParallelCoordinates {
  std::string title;
  std::vector<Dimension> dimensions;  ///< two or more
  std::vector<Member> members;
};

/// Throws ContractViolation where a member has another number of values than there are dimensions.
Html parallel_coordinates(const ParallelCoordinates& chart);

/// A result over two keys. The lower it is, the stronger a cell's color; a cell without a result is
/// marked.
struct HeatMap {
  std::string title;
  std::string x_name, y_name;
  std::vector<std::string> x_labels, y_labels;
  std::vector<double> values;  ///< row after row: one row for each y label; NaN: missing
  std::function<std::string(double)> format = short_number;
};

/// Throws ContractViolation where the number of values is not x_labels times y_labels.
Html heat_map(const HeatMap& chart);

}  // namespace tessera::report
