// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "chart_frame.hpp"
#include "tessera/base/error.hpp"

namespace tessera::report {
namespace {

constexpr double kRowHeight = 34, kAbove = 46, kCharacterWidth = 7;

/// What the colors run over. A member that diverged must not make all others look alike.
struct Colors {
  double low = 0, high = 0;
  double strength(double value) const {
    return high > low ? std::clamp((high - value) / (high - low), 0.0, 1.0) : 1;
  }
};

Colors colors_of(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  for (const double value : values)
    if (std::isfinite(value)) low = std::min(low, value);
  return {low, usual_high(values)};
}

double label_width(const std::vector<std::string>& labels) {
  std::size_t longest = 0;
  for (const std::string& label : labels) longest = std::max(longest, label.size());
  return kCharacterWidth * static_cast<double>(longest);
}

class Map {
 public:
  explicit Map(const HeatMap& chart)
      : chart_(chart),
        colors_(colors_of(chart.values)),
        left_(24 + std::max(label_width(chart.y_labels), label_width({chart.y_name}))),
        cell_(std::clamp(560 / std::max(1.0, static_cast<double>(chart.x_labels.size())), 24.0,
                         110.0)) {}

  Html html() const {
    const double width =
        std::max(420.0, left_ + cell_ * static_cast<double>(chart_.x_labels.size()) + 12);
    const double height = kAbove + kRowHeight * static_cast<double>(chart_.y_labels.size()) + 12;
    // Cells keep their size: a map of three by three does not fill the page.
    return {fmt::format(
        "<figure class=\"scrolls\">\n<figcaption>{}</figcaption>\n{}{}{}</svg>\n</figure>\n",
        escape(chart_.title), svg_begin_fixed(width, height, chart_.title), labels(), cells())};
  }

 private:
  double x(std::size_t column) const { return left_ + cell_ * static_cast<double>(column); }
  static double y(std::size_t row) { return kAbove + kRowHeight * static_cast<double>(row); }

  std::string labels() const {
    std::string svg = text_at(left_, 14, "start", chart_.x_name, "name") +
                      text_at(left_ - 10, kAbove - 12, "end", chart_.y_name, "name");
    const auto every = static_cast<std::size_t>(std::ceil(label_width(chart_.x_labels) / cell_));
    for (std::size_t i = 0; i < chart_.x_labels.size(); i += std::max<std::size_t>(1, every))
      svg += text_at(x(i) + cell_ / 2, kAbove - 12, "middle", chart_.x_labels[i]);
    for (std::size_t i = 0; i < chart_.y_labels.size(); ++i)
      svg += text_at(left_ - 10, y(i) + kRowHeight / 2 + 4, "end", chart_.y_labels[i]);
    return svg;
  }

  std::string cells() const {
    std::string svg;
    for (std::size_t row = 0; row < chart_.y_labels.size(); ++row)
      for (std::size_t column = 0; column < chart_.x_labels.size(); ++column)
        svg += cell(row, column);
    return svg;
  }

  std::string cell(std::size_t row, std::size_t column) const {
    const double value = chart_.values[row * chart_.x_labels.size() + column];
    const bool known = std::isfinite(value);
    const double strength = known ? 0.08 + 0.92 * colors_.strength(value) : 1;
    const std::string text = known ? chart_.format(value) : "none";
    std::string svg = fmt::format(
        "<rect class=\"cell{}\" fill-opacity=\"{:.2f}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" "
        "rx=\"3\">"
        "<title>{} {}, {} {}: {}</title></rect>\n",
        known ? "" : " none", strength, x(column) + 1, y(row) + 1, cell_ - 2, kRowHeight - 2,
        escape(chart_.x_name), escape(chart_.x_labels[column]), escape(chart_.y_name),
        escape(chart_.y_labels[row]), escape(text));
    if (kCharacterWidth * static_cast<double>(text.size()) < cell_)
      svg += text_at(x(column) + cell_ / 2, y(row) + kRowHeight / 2 + 4, "middle", text,
                     known && strength > 0.55 ? "incell on" : "incell");
    return svg;
  }

  const HeatMap& chart_;
  Colors colors_;
  double left_, cell_;
};

}  // namespace

Html heat_map(const HeatMap& chart) {
  TESSERA_EXPECT(chart.values.size() == chart.x_labels.size() * chart.y_labels.size(),
                 "{} values of {} x {} cells", chart.values.size(), chart.x_labels.size(),
                 chart.y_labels.size());
  return Map(chart).html();
}

}  // namespace tessera::report
