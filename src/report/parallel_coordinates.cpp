#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "chart_frame.hpp"
#include "tessera/base/error.hpp"

namespace tessera::report {
namespace {

constexpr double kTop = 34, kBottom = 300, kHeight = 320, kSide = 70, kBetween = 130;

/// One vertical axis.
struct Vertical {
  double x;
  bool log;
  Scale scale;
  std::vector<double> shown;  ///< values that have a label
};

std::set<double> known_values(const ParallelCoordinates& chart, std::size_t d) {
  std::set<double> values;
  for (const Member& member : chart.members)
    if (std::isfinite(member.values[d])) values.insert(member.values[d]);
  return values;
}

/// The values themselves where they are few, as those of a sweep mostly are.
std::vector<double> labelled(const std::set<double>& values, bool log) {
  constexpr std::size_t kMost = 8;
  if (values.size() <= kMost) return {values.begin(), values.end()};
  std::vector<double> some;
  const double low = axis_value(*values.begin(), log), high = axis_value(*values.rbegin(), log);
  for (int i = 0; i <= 4; ++i)
    some.push_back(log ? std::pow(10, low + (high - low) * i / 4) : low + (high - low) * i / 4);
  return some;
}

Vertical vertical(const ParallelCoordinates& chart, std::size_t d, double x) {
  std::set<double> values = known_values(chart, d);
  for (std::size_t i = 0; i < chart.dimensions[d].labels.size(); ++i) values.insert(static_cast<double>(i));
  if (values.empty()) return {x, false, {0, 1, kBottom, kTop}, {}};
  const bool log = chart.dimensions[d].log && *values.begin() > 0;
  double low = axis_value(*values.begin(), log), high = axis_value(*values.rbegin(), log);
  if (!(high > low)) low -= std::max(1.0, std::abs(low)), high += std::max(1.0, std::abs(high));
  return {x, log, {low, high, kBottom, kTop}, labelled(values, log)};
}

std::string label_of(const Dimension& dimension, double value) {
  const auto i = static_cast<std::size_t>(value);
  return dimension.labels.empty() || i >= dimension.labels.size() ? short_number(value) : dimension.labels[i];
}

std::string drawn(const Vertical& axis, const Dimension& dimension) {
  std::string svg = line_from("axis", axis.x, kTop, axis.x, kBottom);
  svg += text_at(axis.x, kTop - 16, "middle", dimension.name, "name");
  for (const double value : axis.shown) {
    const double y = axis.scale(axis_value(value, axis.log));
    svg += line_from("axis", axis.x - 4, y, axis.x, y);
    svg += text_at(axis.x - 7, y + 4, "end", label_of(dimension, value), "halo");
  }
  return svg;
}

std::string description(const ParallelCoordinates& chart, const Member& member) {
  std::string text = member.name;
  for (std::size_t d = 0; d < member.values.size(); ++d)
    text +=
        fmt::format("\n{} {}", chart.dimensions[d].name,
                    std::isfinite(member.values[d]) ? label_of(chart.dimensions[d], member.values[d]) : "not known");
  return text;
}

std::string line_of(const ParallelCoordinates& chart, const Member& member, const std::vector<Vertical>& axes,
                    double strength) {
  std::vector<Point> points;
  for (std::size_t d = 0; d < axes.size(); ++d)
    if (std::isfinite(member.values[d]))
      points.push_back({axes[d].x, axes[d].scale(axis_value(member.values[d], axes[d].log))});
  const bool known = std::isfinite(member.values.back());
  const Scale same{0, 1, 0, 1};
  return fmt::format(
      "<path class=\"member{}\" stroke-opacity=\"{:.2f}\" stroke-width=\"{:.1f}\" d=\"{}\"><title>{}</title></path>\n",
      known ? "" : " none", known ? 0.15 + 0.85 * strength : 1.0, strength >= 1 ? 3.5 : 1.6,
      path_data(points, same, same), escape(description(chart, member)));
}

/// Worst first, so that the best lies on top; without a result behind all.
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
  const auto known = std::ranges::count_if(order, [](const Member* m) { return std::isfinite(m->values.back()); });
  std::string svg = "<g class=\"members\">\n";
  std::ptrdiff_t rank = 0;
  for (const Member* member : order) {
    const bool has_result = std::isfinite(member->values.back());
    svg += line_of(chart, *member, axes, has_result ? static_cast<double>(++rank) / static_cast<double>(known) : 0);
  }
  return svg + "</g>\n";
}

}  // namespace

Html parallel_coordinates(const ParallelCoordinates& chart) {
  TESSERA_EXPECT(chart.dimensions.size() >= 2, "{} dimensions", chart.dimensions.size());
  for (const Member& member : chart.members)
    TESSERA_EXPECT(member.values.size() == chart.dimensions.size(), "{} values of {}", member.values.size(),
                   member.name);
  const double width = std::max(620.0, 2 * kSide + kBetween * static_cast<double>(chart.dimensions.size() - 1));
  const double between = (width - 2 * kSide) / static_cast<double>(chart.dimensions.size() - 1);
  std::vector<Vertical> axes;
  std::string drawn_axes;
  for (std::size_t d = 0; d < chart.dimensions.size(); ++d) {
    axes.push_back(vertical(chart, d, kSide + between * static_cast<double>(d)));
    drawn_axes += drawn(axes.back(), chart.dimensions[d]);
  }
  return {fmt::format("<figure class=\"scrolls\">\n<figcaption>{}</figcaption>\n{}{}{}</svg>\n</figure>\n",
                      escape(chart.title), svg_begin(width, kHeight, chart.title), lines(chart, axes), drawn_axes)};
}

}  // namespace tessera::report
