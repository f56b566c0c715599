// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "chart_frame.hpp"
#include "hover.hpp"
#include "page_style.hpp"
#include "smoothing.hpp"

namespace tessera::report {
namespace {

/// Where the values are, on the axis; what is far outside of the rest is cut off.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool empty() const { return !(low <= high); }
  void take(double value) { low = std::min(low, value), high = std::max(high, value); }
};

/// Without the one in two hundred at either side, unless it is near. What a series began with
/// always counts.
Extent usual_extent(const std::vector<Point>& points) {
  std::vector<double> values;
  for (const Point& p : points)
    if (std::isfinite(p.y)) values.push_back(p.y);
  if (values.empty()) return {};
  const double beginning =
      std::ranges::max(std::span(values).first(std::min<std::size_t>(5, values.size())));
  std::ranges::sort(values);
  const std::size_t cut = (values.size() + 180) / 200;
  Extent extent{values[cut], std::max(beginning, values[values.size() - 1 - cut])};
  const double near = 0.3 * (extent.high - extent.low);
  if (values.front() > extent.low - near) extent.take(values.front());
  if (values.back() < extent.high + near) extent.take(values.back());
  return extent;
}

/// In the axes' own coordinates: the logarithm where they are logarithmic.
std::vector<Point> on_axes(const LineChart& chart, const Series& series) {
  std::vector<Point> points;
  for (const Point& p : series.points) {
    const Point moved{axis_value(p.x, chart.log_x), axis_value(p.y, chart.log_y)};
    if (std::isfinite(moved.x))
      points.push_back({moved.x, std::abs(moved.y) < 1e30 ? moved.y : std::nan("")});
  }
  return points;
}

std::vector<Point> mean_of(const std::vector<Point>& raw, const Extent& y) {
  std::vector<double> values(raw.size());
  std::ranges::transform(raw, values.begin(), [&](const Point& p) {
    return std::isfinite(p.y) ? std::clamp(p.y, y.low, y.high) : p.y;
  });
  values = smooth(values, std::max<std::size_t>(2, raw.size() / 60));
  std::vector<Point> mean(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) mean[i] = {raw[i].x, values[i]};
  return mean;
}

class Drawing {
 public:
  explicit Drawing(const LineChart& chart) : chart_(chart) {
    int colors = 0;
    for (const Series& series : chart.series) {
      points_.push_back(on_axes(chart, series));
      const bool colored = !series.muted && colors < kSeriesColors;
      classes_.push_back(colored ? fmt::format("c{}", colors++) : "muted");
      measure(points_.back());
    }
    // A series that diverged must not flatten the others.
    if (highs_.size() >= 3) highs_.push_back(y_.low);
    if (!highs_.empty()) y_.high = usual_high(highs_);
  }

  Html html() const {
    return {fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}</figure>\n",
                        escape(chart_.title), legend(), svg())};
  }

 private:
  void measure(const std::vector<Point>& points) {
    if (points.empty()) return;
    x_.take(points.front().x), x_.take(points.back().x);
    if (const Extent y = usual_extent(points); !y.empty())
      y_.low = std::min(y_.low, y.low), highs_.push_back(y.high);
  }

  std::string legend() const {
    std::string items;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (classes_[i] != "muted")
        items += fmt::format("<li><i class=\"{}\"></i>{} <b>{}</b></li>\n", classes_[i],
                             escape(chart_.series[i].name), escape(last_value(chart_.series[i])));
    const auto others = std::ranges::count(classes_, "muted");
    if (others > 0) items += fmt::format("<li><i class=\"muted\"></i>{} more</li>\n", others);
    return "<ul class=\"legend\">\n" + items + "</ul>\n";
  }

  std::string last_value(const Series& series) const {
    const auto last = std::find_if(series.points.rbegin(), series.points.rend(),
                                   [](const Point& p) { return std::isfinite(p.y); });
    return last == series.points.rend() ? "no value" : chart_.format(last->y);
  }

  std::string svg() const {
    std::string svg = svg_begin(kFrame.width, kFrame.height, chart_.title);
    if (y_.empty() || x_.empty())
      return svg +
             text_at((kFrame.left + kFrame.right) / 2, (kFrame.top + kFrame.bottom) / 2, "middle",
                     "no values") +
             "</svg>\n";
    const Axis x = x_axis(), y = y_axis();
    svg += axis_lines(x, y, chart_.x_label);
    svg += fmt::format(
        "<svg x=\"{0:g}\" y=\"{1:g}\" width=\"{2:g}\" height=\"{3:g}\" viewBox=\"{0:g} {1:g} {2:g} "
        "{3:g}\">\n",
        kFrame.left, kFrame.top, kFrame.right - kFrame.left, kFrame.bottom - kFrame.top);
    svg += curves(x, y, true) + curves(x, y, false) + "</svg>\n" + marks(x);
    return svg + hover_layer(chart_, classes_, x, y) + "</svg>\n";
  }

  Axis x_axis() const {
    const double high = x_.high > x_.low
                            ? x_.high
                            : std::nextafter(x_.low + 1, std::numeric_limits<double>::infinity());
    return {{x_.low, high, kFrame.left, kFrame.right}, chart_.log_x};
  }

  Axis y_axis() const {
    const double margin =
        y_.high > y_.low ? 0.05 * (y_.high - y_.low) : std::max(1e-12, 0.1 * std::abs(y_.high));
    const double low = chart_.from_zero && !chart_.log_y ? std::min(0.0, y_.low) : y_.low - margin;
    const double high =
        std::max(y_.high + margin, std::nextafter(low, std::numeric_limits<double>::infinity()));
    return {{low, high, kFrame.bottom, kFrame.top}, chart_.log_y};
  }

  /// Muted ones first, so that the others cover them.
  std::string curves(const Axis& x, const Axis& y, bool muted) const {
    std::string svg;
    for (std::size_t i = points_.size(); i-- > 0;)
      if ((classes_[i] == "muted") == muted) svg += curve(i, x, y);
    return svg;
  }

  std::string curve(std::size_t i, const Axis& x, const Axis& y) const {
    const auto path = [&](std::string_view kind, std::span<const Point> points) {
      return fmt::format("<path class=\"curve {}{}\" d=\"{}\"/>\n", classes_[i], kind,
                         path_data(thin(points, kPixelColumns), x.scale, y.scale));
    };
    const auto& points = points_[i];
    if (points.size() == 1 && std::isfinite(points[0].y))
      return dot_at(x.scale(points[0].x), y.scale(points[0].y), classes_[i]);
    if (!chart_.smooth || points.size() < 8) return path("", points);
    return path(" raw", points) + path("", mean_of(points, y_));
  }

  std::string marks(const Axis& x) const {
    std::string svg;
    for (const Mark& mark : chart_.marks) {
      const double at = x.scale(axis_value(mark.x, chart_.log_x));
      if (!(at >= kFrame.left - 1 && at <= kFrame.right + 1)) continue;
      const bool left_side = at > kFrame.right - 120;
      svg += line_from("mark", at, kFrame.top, at, kFrame.bottom);
      svg += text_at(at + (left_side ? -4 : 4), kFrame.top + 10, left_side ? "end" : "start",
                     mark.label, "marklabel halo");
    }
    return svg;
  }

  const LineChart& chart_;
  std::vector<std::vector<Point>> points_;
  std::vector<std::string> classes_;
  Extent x_, y_;
  std::vector<double> highs_;  ///< of the series
};

}  // namespace

Html line_chart(const LineChart& chart) { return Drawing(chart).html(); }

}  // namespace tessera::report
