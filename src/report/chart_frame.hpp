// SPDX-License-Identifier: Apache-2.0
// What the charts of a page share: where their frame is, axes, and SVG elements. Colors come from
// the page's style.
#pragma once

#include <string>
#include <string_view>

#include "svg_plot.hpp"
#include "tessera/report/chart.hpp"

namespace tessera::report {

/// In units of the view box; the browser scales it to the column's width.
struct Frame {
  double width, height, left, right, top, bottom;
};
inline constexpr Frame kFrame{620, 280, 52, 608, 12, 244};
inline constexpr auto kPixelColumns = static_cast<std::size_t>(kFrame.right - kFrame.left);

/// The value on an axis: its logarithm to base 10 where the axis is logarithmic, NaN where it has
/// none.
double axis_value(double value, bool log);

struct Axis {
  Scale scale;  ///< of axis_value()
  bool log = false;
};

struct Tick {
  double at;  ///< on the axis
  std::string label;
};
/// About `count` round values of the axis.
std::vector<Tick> axis_ticks(const Axis& axis, int count);

/// The highest value that is not far above the rest: what diverged must not make all others look
/// alike. NaN where no value is finite.
double usual_high(std::vector<double> values);

/// An <svg> that keeps its size: a wide one scrolls.
std::string svg_begin_fixed(double width, double height, std::string_view description);

/// Lines and numbers of both axes, and `x_label` under the right end.
std::string axis_lines(const Axis& x, const Axis& y, std::string_view x_label);

std::string svg_begin(double width, double height, std::string_view description);
std::string line_from(std::string_view css_class, double x1, double y1, double x2, double y2);
std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view css_class = "");
std::string dot_at(double x, double y, std::string_view css_class);

}  // namespace tessera::report
