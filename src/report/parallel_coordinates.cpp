// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "chart_frame.hpp"
#include "tessera/base/error.hpp"

namespace tessera::report {
namespace {

constexpr double kTop = 34, kBottom = 300, kHeight = 320, kBetween = 150;

/// One vertical axis.
struct Vertical {
  double x;
  Axis axis;
  std::vector<Tick> ticks;
  /// What is above the axis is drawn at its end.
  double y(double value) const {
    return std::clamp(axis.scale(axis_value(value, axis.log)), kTop, kBottom);
  }
};

std::vector<double> known_values(const ParallelCoordinates& chart, std::size_t d) {
  std::set<double> values;
  for (const Member& member : chart.members)
    if (std::isfinite(member.values[d])) values.insert(member.values[d]);
  for (std::size_t i = 0; i < chart.dimensions[d].labels.size(); ++i)
    values.insert(static_cast<double>(i));
  return {values.begin(), values.end()};
}

std::string label_of(const Dimension& dimension, double value) {
  const auto i = static_cast<std::size_t>(value);
  return dimension.labels.empty() || i >= dimension.labels.size() ? short_number(value)
                                                                  : dimension.labels[i];
}

/// The values themselves where they are few, as those of a sweep's key mostly are.
std::vector<Tick> ticks_of(const Dimension& dimension, const std::vector<double>& values,
                           const Axis& axis, bool result) {
  constexpr std::size_t kMost = 8;
  if (result || (values.size() > kMost && dimension.labels.empty())) return axis_ticks(axis, 5);
  std::vector<Tick> ticks;
  for (const double value : values)
    ticks.push_back({axis_value(value, axis.log), label_of(dimension, value)});
  return ticks;
}

Vertical vertical(const ParallelCoordinates& chart, std::size_t d, double x) {
  const bool result = d + 1 == chart.dimensions.size();
  const std::vector<double> values = known_values(chart, d);
  if (values.empty()) return {x, {{0, 1, kBottom, kTop}, false}, {}};
  const bool log = chart.dimensions[d].log && values.front() > 0;
  double low = axis_value(values.front(), log),
         high = axis_value(result ? usual_high(values) : values.back(), log);
  if (!(high > low)) low -= std::max(1.0, std::abs(low)), high += std::max(1.0, std::abs(high));
  const Axis axis{{low, high, kBottom, kTop}, log};
  return {x, axis, ticks_of(chart.dimensions[d], values, axis, result)};
}

std::string drawn(const Vertical& axis, const Dimension& dimension) {
  std::string svg = line_from("axis", axis.x, kTop, axis.x, kBottom);
  svg += text_at(axis.x, kTop - 16, "middle", dimension.name, "name");
  for (const Tick& tick : axis.ticks) {
    const double y = axis.axis.scale(tick.at);
    svg += line_from("axis", axis.x - 4, y, axis.x, y) +
           text_at(axis.x - 7, y + 4, "end", tick.label, "halo");
  }
  return svg;
}

std::string description(const ParallelCoordinates& chart, const Member& member) {
  std::string text = member.name;
  for (std::size_t d = 0; d < member.values.size(); ++d)
    text += fmt::format("\n{} {}", chart.dimensions[d].name,
                        std::isfinite(member.values[d])
                            ? label_of(chart.dimensions[d], member.values[d])
                            : "not known");
  return text;
}

std::string line_of(const ParallelCoordinates& chart, const Member& member,
                    const std::vector<Vertical>& axes, double strength) {
  std::vector<Point> points;
  for (std::size_t d = 0; d < axes.size(); ++d)
    if (std::isfinite(member.values[d])) points.push_back({axes[d].x, axes[d].y(member.values[d])});
  const bool known = std::isfinite(member.values.back());
  const Scale same{0, 1, 0, 1};
  return fmt::format(
      "<path class=\"member{}\" stroke-opacity=\"{:.2f}\" stroke-width=\"{:.1f}\" "
      "d=\"{}\"><title>{}</title></path>\n",
      known ? "" : " none", known ? 0.15 + 0.85 * strength : 1.0, strength >= 1 ? 3.5 : 1.6,
      path_data(points, same, same), escape(description(chart, member)));
}

/// Worst first, so that the best is on top; those without a result below all.
std::vector<const Member*> by_result(const ParallelCoordinates& chart) {
  std::vector<const Member*> order;
  for (const Member& member : chart.members) order.push_back(&member);
  std::ranges::stable_sort(order, [](const Member* a, const Member* b) {
    const double x = a->values.back(), y = b->values.back();
    return std::isfinite(x) && std::isfinite(y) ? x > y : !std::isfinite(x) && std::isfinite(y);
  });
  return order;
}

std::string lines(const ParallelCoordinates& chart, const std::vector<Vertical>& axes) {
  const std::vector<const Member*> order = by_result(chart);
  const auto known =
      std::ranges::count_if(order, [](const Member* m) { return std::isfinite(m->values.back()); });
  std::string svg = "<g class=\"members\">\n";
  std::ptrdiff_t rank = 0;
  for (const Member* member : order) {
    const bool has_result = std::isfinite(member->values.back());
    svg += line_of(chart, *member, axes,
                   has_result ? static_cast<double>(++rank) / static_cast<double>(known) : 0);
  }
  return svg + "</g>\n";
}

/// Between two axes, so that their names are side by side.
double distance_of(const ParallelCoordinates& chart) {
  std::size_t longest = 0;
  for (const Dimension& dimension : chart.dimensions)
    longest = std::max(longest, dimension.name.size());
  return std::max(kBetween, 24 + 7.2 * static_cast<double>(longest));
}

}  // namespace

Html parallel_coordinates(const ParallelCoordinates& chart) {
  TESSERA_EXPECT(chart.dimensions.size() >= 2, "{} dimensions", chart.dimensions.size());
  for (const Member& member : chart.members)
    TESSERA_EXPECT(member.values.size() == chart.dimensions.size(), "{} values of {}",
                   member.values.size(), member.name);
  const double between = distance_of(chart), side = between / 2;
  const double width = 2 * side + between * static_cast<double>(chart.dimensions.size() - 1);
  std::vector<Vertical> axes;
  std::string drawn_axes;
  for (std::size_t d = 0; d < chart.dimensions.size(); ++d) {
    axes.push_back(vertical(chart, d, side + between * static_cast<double>(d)));
    drawn_axes += drawn(axes.back(), chart.dimensions[d]);
  }
  return {fmt::format(
      "<figure class=\"scrolls\">\n<figcaption>{}</figcaption>\n{}{}{}</svg>\n</figure>\n",
      escape(chart.title), svg_begin_fixed(width, kHeight, chart.title), lines(chart, axes),
      drawn_axes)};
}

}  // namespace tessera::report
