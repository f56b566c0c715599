// SPDX-License-Identifier: Apache-2.0
#include "chart_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::report {
namespace {

std::vector<Tick> linear_ticks(double low, double high, int count) {
  const double step = tick_step(low, high, count);
  std::vector<Tick> all;
  for (const double value : ticks(low, high, step)) {
    const bool small = step < 1e-3, large = std::max(std::abs(low), std::abs(high)) >= 1e4;
    all.push_back({value, small || large ? short_number(value) : tick_label(value, step)});
  }
  return all;
}

/// Powers of ten; with their doubles and fives where there are few; round values where there is not
/// even one.
std::vector<Tick> log_ticks(const Scale& scale, int count) {
  const double decades = scale.from_high - scale.from_low;
  if (decades < 1) {
    std::vector<Tick> all =
        linear_ticks(std::pow(10, scale.from_low), std::pow(10, scale.from_high), count);
    for (Tick& tick : all) tick.at = axis_value(tick.at, true);
    std::erase_if(all, [](const Tick& tick) { return !std::isfinite(tick.at); });
    return all;
  }
  const double every = std::max(1.0, std::ceil(decades / 8));
  std::vector<Tick> all;
  for (double power = std::floor(scale.from_low); power <= scale.from_high && all.size() < 40;
       power += every)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double at = power + std::log10(factor);
      const bool wanted = factor == 1 || decades < 2.5;
      if (wanted && at >= scale.from_low && at <= scale.from_high)
        all.push_back({at, short_number(std::pow(10, at))});
    }
  return all;
}

}  // namespace

std::string short_number(double value) {
  if (!std::isfinite(value)) return "-";
  if (value != 0 && (std::abs(value) < 1e-3 || std::abs(value) >= 1e15)) {
    const double exponent = std::floor(std::log10(std::abs(value)) + 1e-9);
    return fmt::format("{:.4g}e{:g}", value / std::pow(10, exponent), exponent);
  }
  return std::abs(value) < 1e4 ? fmt::format("{:.4g}", value)
                               : count_label(std::stod(fmt::format("{:.4g}", value)));
}

double axis_value(double value, bool log) {
  if (!log) return value;
  return value > 0 ? std::log10(value) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Tick> axis_ticks(const Axis& axis, int count) {
  return axis.log ? log_ticks(axis.scale, count)
                  : linear_ticks(axis.scale.from_low, axis.scale.from_high, count);
}

double usual_high(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const double median = values[values.size() / 2];
  const double limit = median + 2 * (median - values.front());
  return limit > values.front() ? std::min(values.back(), limit) : values.back();
}

std::string svg_begin_fixed(double width, double height, std::string_view description) {
  std::string begin = svg_begin(width, height, description);
  return begin.insert(begin.find(' '),
                      fmt::format(" style=\"width:{0:g}px;min-width:{0:g}px\"", width));
}

std::string svg_begin(double width, double height, std::string_view description) {
  return fmt::format("<svg viewBox=\"0 0 {:g} {:g}\" role=\"img\" aria-label=\"{}\">\n", width,
                     height, escape(description));
}

std::string line_from(std::string_view css_class, double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", css_class,
      x1, y1, x2, y2);
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view css_class) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class),
                     escape(text));
}

std::string dot_at(double x, double y, std::string_view css_class) {
  return fmt::format("<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n", css_class,
                     x, y);
}

std::string axis_lines(const Axis& x, const Axis& y, std::string_view x_label) {
  std::string svg;
  for (const Tick& tick : axis_ticks(y, 5)) {
    svg += line_from("gridline", kFrame.left, y.scale(tick.at), kFrame.right, y.scale(tick.at));
    svg += text_at(kFrame.left - 8, y.scale(tick.at) + 4, "end", tick.label);
  }
  for (const Tick& tick : axis_ticks(x, 7)) {
    svg += line_from("axis", x.scale(tick.at), kFrame.bottom, x.scale(tick.at), kFrame.bottom + 4);
    svg += text_at(x.scale(tick.at), kFrame.bottom + 18, "middle", tick.label);
  }
  svg += line_from("axis", kFrame.left, kFrame.bottom, kFrame.right, kFrame.bottom);
  return svg + text_at(kFrame.right, kFrame.bottom + 33, "end", x_label);
}

}  // namespace tessera::report
