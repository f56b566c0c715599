// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tessera::app {
namespace {

constexpr std::string_view kStyle = R"(<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;font-size:12px;fill:#57606a}
.page{fill:#ffffff}.title{font-size:18px;font-weight:600;fill:#1f2328}.right{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:#8c959f;stroke-opacity:.3;fill:none}.line{fill:none;stroke-width:2}.dashed{stroke-dasharray:5 4}
.blue{stroke:#0a66c2;fill:#0a66c2}.green{stroke:#2e7d32;fill:#2e7d32}.brown{stroke:#9a6700;fill:#9a6700}
.grey{stroke:#8c959f;fill:#8c959f}.red{stroke:#cf222e;fill:#cf222e}.line,.hollow{fill:none}.area{stroke:none}.hollow{stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#9aa4ae}.page{fill:#0d1117}.title{fill:#e6edf3}
.blue{stroke:#58a6ff;fill:#58a6ff}.green{stroke:#3fb950;fill:#3fb950}.brown{stroke:#d29922;fill:#d29922}
.grey{stroke:#6e7681;fill:#6e7681}.red{stroke:#f85149;fill:#f85149}.line,.hollow{fill:none}.area{stroke:none}}
</style>
)";

const char* name_of(Hue hue) {
  constexpr std::array<const char*, 5> kNames{"blue", "green", "brown", "grey", "red"};
  return kNames[static_cast<std::size_t>(hue)];
}

std::string path_of(const Pixels& points) {
  std::string path;
  for (const auto& [x, y] : points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
  return path;
}

/// 1, 2 or 5 times a power of ten, not less than `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= step) return factor * power;
  return 10 * power;
}

}  // namespace

std::string svg_page(double width, double height, const std::string& title,
                     const std::string& body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
      "height=\"{1:g}\" role=\"img\">\n<title>{3}</title>\n{2}<rect class=\"page\" "
      "width=\"{0:g}\" height=\"{1:g}\"/>\n{4}{5}</svg>\n",
      width, height, kStyle, title, svg_text(24, 34, title, "title"), body);
}

std::string svg_text(double x, double y, const std::string& words, const char* kind) {
  return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", kind, x, y, words);
}

std::string svg_line(const Pixels& points, Hue hue, bool dashed) {
  return fmt::format("<path class=\"line {}{}\" d=\"{}\"/>\n", name_of(hue),
                     dashed ? " dashed" : "", path_of(points));
}

std::string svg_area(const Pixels& outline, Hue hue) {
  return fmt::format("<path class=\"area {}\" fill-opacity=\"0.6\" d=\"{}z\"/>\n", name_of(hue),
                     path_of(outline));
}

std::string svg_dot(double x, double y, Hue hue, bool hollow, const std::string& hint) {
  return fmt::format(
      "<circle class=\"{}{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title></circle>\n",
      name_of(hue), hollow ? " hollow" : "", x, y, hint);
}

std::string short_number(double value) {
  constexpr std::array<const char*, 6> kUnits{"", "k", "M", "G", "T", "P"};
  if (std::abs(value) < 99'999.5) return fmt::format("{:.5g}", value);
  std::size_t unit = 0;
  for (; unit + 1 < kUnits.size() && std::abs(value) >= 999.5; ++unit) value /= 1000;
  return fmt::format("{:.3g}{}", value, kUnits[unit]);
}

double Span::share(double value) const {
  if (logarithmic) return std::log(value / least) / std::log(most / least);
  return (value - least) / (most - least);
}

std::vector<double> Span::ticks(int count) const {
  std::vector<double> out;
  if (logarithmic) {
    const bool halves = most / least < 300;  // few decades: powers of two
    const double base = halves ? 2 : 10;
    for (double at = std::ceil(std::log(least) / std::log(base) - 1e-9);; ++at) {
      const double value = std::pow(base, at);
      if (value > most * 1.000001) return out;
      out.push_back(value);
    }
  }
  const double step = round_step((most - least) / count);
  for (double at = std::ceil(least / step - 1e-9); at * step <= most * 1.000001; ++at)
    out.push_back(at * step + 0.0);
  return out;
}

std::pair<double, double> Chart::at(double x, double y) const {
  return {kLeft + x_.share(x) * (kWidth - kLeft - kRight),
          kHeight - kBottom - y_.share(y) * (kHeight - kTop - kBottom)};
}

std::string Chart::axes(const std::string& x_name, const std::string& y_name) const {
  std::string svg;
  const auto rule = [&](const std::pair<double, double>& from,
                        const std::pair<double, double>& to) {
    svg += fmt::format("<path class=\"grid\" d=\"{}\"/>\n", path_of({from, to}));
  };
  for (const double x : x_.ticks(8)) {
    rule(at(x, y_.least), at(x, y_.most));
    svg += svg_text(at(x, y_.least).first, kHeight - kBottom + 18, short_number(x), "middle");
  }
  for (const double y : y_.ticks(6)) {
    rule(at(x_.least, y), at(x_.most, y));
    svg += svg_text(kLeft - 8, at(x_.least, y).second + 4, short_number(y), "right");
  }
  svg += svg_text((kLeft + kWidth - kRight) / 2, kHeight - 14, x_name, "middle");
  return svg + svg_text(24, kTop - 8, y_name);
}

std::string Chart::line(const std::vector<std::pair<double, double>>& points, Hue hue,
                        bool dashed) const {
  Pixels pixels;
  for (const auto& [x, y] : points) pixels.push_back(at(x, y));
  return svg_line(pixels, hue, dashed);
}

}  // namespace tessera::app
