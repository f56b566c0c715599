// SPDX-License-Identifier: Apache-2.0
// Pictures of numbers as SVG, readable on light and on dark pages.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tessera::app {

/// Colours of lines and areas.
enum class Hue : int { blue, green, brown, grey, red };

/// A page of `width` pixels with a title and what `body` draws.
std::string svg_page(double width, double height, const std::string& title,
                     const std::string& body);

/// Elements of a page. Texts begin at (x, y), or end there.
std::string svg_text(double x, double y, const std::string& words, const char* kind = "");
using Pixels = std::vector<std::pair<double, double>>;
std::string svg_line(const Pixels& points, Hue hue, bool dashed = false);
std::string svg_area(const Pixels& outline, Hue hue);
std::string svg_dot(double x, double y, Hue hue, bool hollow, const std::string& hint);

/// "0.5", "16384", "131k", "2M"
std::string short_number(double value);

/// Which part of an axis is seen.
struct Span {
  double least = 0, most = 1;
  bool logarithmic = false;

  /// 0 at the least value, and 1 at the most.
  double share(double value) const;
  /// Round values, about `count` of them.
  std::vector<double> ticks(int count) const;
};

/// A field with two axes, on which values become pixels.
class Chart {
 public:
  Chart(Span x, Span y) : x_(x), y_(y) {}

  std::pair<double, double> at(double x, double y) const;
  /// Grid, numbers and names of both axes.
  std::string axes(const std::string& x_name, const std::string& y_name) const;
  /// Through (x, y) of values.
  std::string line(const std::vector<std::pair<double, double>>& points, Hue hue,
                   bool dashed = false) const;

  static constexpr double kWidth = 860, kHeight = 460;

 private:
  static constexpr double kLeft = 84, kRight = 24, kTop = 60, kBottom = 56;

  Span x_, y_;
};

}  // namespace tessera::app
