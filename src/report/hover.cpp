// SPDX-License-Identifier: Apache-2.0
#include "hover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tessera::report {
namespace {

constexpr std::size_t kMostPlaces = 60;
constexpr double kLineHeight = 17, kCharacter = 6.4;

struct Readout {
  std::string text;
  std::string css_class;
  double x, y;  ///< pixels of the point
};

/// x of the points of all series that are shown, at most kMostPlaces of them, the last one among
/// them.
std::vector<double> places(const LineChart& chart, const std::vector<std::string>& classes) {
  std::set<double> all;
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (const Point& p : chart.series[i].points)
      if (classes[i] != "muted" && std::isfinite(axis_value(p.x, chart.log_x))) all.insert(p.x);
  const std::vector<double> sorted(all.begin(), all.end());
  if (sorted.size() <= kMostPlaces) return sorted;
  std::vector<double> some;
  for (std::size_t i = 1; i <= kMostPlaces; ++i)
    some.push_back(sorted[i * sorted.size() / kMostPlaces - 1]);
  return some;
}

/// The last point of a series in (after, up_to] that has a value.
const Point* point_in(const Series& series, const Axis& x, const Axis& y, double after,
                      double up_to) {
  const auto end = std::ranges::upper_bound(series.points, up_to, {}, &Point::x);
  for (auto at = end; at != series.points.begin() && std::prev(at)->x > after; --at)
    if (std::isfinite(axis_value(std::prev(at)->x, x.log) + axis_value(std::prev(at)->y, y.log)))
      return &*std::prev(at);
  return nullptr;
}

std::string box(double x, const std::string& title, const std::vector<Readout>& readouts) {
  std::size_t longest = title.size();
  for (const Readout& r : readouts) longest = std::max(longest, r.text.size());
  const double width = 20 + kCharacter * static_cast<double>(longest);
  const double left = x < (kFrame.left + kFrame.right) / 2 ? x + 10 : x - 10 - width;
  std::string svg = fmt::format(
      "<rect class=\"box\" x=\"{:.1f}\" y=\"{:g}\" width=\"{:.1f}\" height=\"{:g}\" rx=\"4\"/>\n",
      left, kFrame.top + 2, width, kLineHeight * static_cast<double>(readouts.size() + 1) + 8);
  svg += text_at(left + 10, kFrame.top + 17, "start", title);
  double y = kFrame.top + 17;
  for (const Readout& r : readouts) svg += text_at(left + 10, y += kLineHeight, "start", r.text);
  for (const Readout& r : readouts) svg += dot_at(r.x, r.y, r.css_class);
  return svg;
}

class Layer {
 public:
  Layer(const LineChart& chart, const std::vector<std::string>& classes, const Axis& x,
        const Axis& y)
      : chart_(chart), classes_(classes), x_(x), y_(y), places_(places(chart, classes)) {}

  std::string svg() const {
    std::string svg = "<g class=\"hover\">\n";
    for (std::size_t i = 0; i < places_.size(); ++i) svg += column(i);
    return svg + "</g>\n";
  }

 private:
  double pixel_x(double x) const { return x_.scale(axis_value(x, x_.log)); }
  double pixel_y(double y) const {
    return std::clamp(y_.scale(axis_value(y, y_.log)), kFrame.top, kFrame.bottom);
  }
  /// Between place i - 1 and place i.
  double border(std::size_t i) const {
    if (i == 0) return kFrame.left;
    return i < places_.size() ? (pixel_x(places_[i - 1]) + pixel_x(places_[i])) / 2 : kFrame.right;
  }

  std::string column(std::size_t i) const {
    const double at = pixel_x(places_[i]);
    return fmt::format("<g><rect x=\"{:.1f}\" y=\"{:g}\" width=\"{:.1f}\" height=\"{:g}\"/>\n",
                       border(i), kFrame.top, std::max(0.1, border(i + 1) - border(i)),
                       kFrame.bottom - kFrame.top) +
           line_from("at", at, kFrame.top, at, kFrame.bottom) +
           box(at, fmt::format("{} {:.10g}", chart_.x_label, places_[i]), readouts(i)) + "</g>\n";
  }

  std::vector<Readout> readouts(std::size_t i) const {
    const double before = i > 0 ? places_[i - 1] : -std::numeric_limits<double>::infinity();
    std::vector<Readout> all;
    for (std::size_t s = 0; s < classes_.size(); ++s) {
      if (classes_[s] == "muted") continue;
      if (const Point* p = point_in(chart_.series[s], x_, y_, before, places_[i]))
        all.push_back({fmt::format("{} {}", chart_.series[s].name, chart_.format(p->y)),
                       classes_[s], pixel_x(p->x), pixel_y(p->y)});
    }
    return all;
  }

  const LineChart& chart_;
  const std::vector<std::string>& classes_;
  const Axis &x_, &y_;
  std::vector<double> places_;
};

}  // namespace

std::string hover_layer(const LineChart& chart, const std::vector<std::string>& classes,
                        const Axis& x, const Axis& y) {
  return Layer(chart, classes, x, y).svg();
}

}  // namespace tessera::report
