// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/loss_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "smoothing.hpp"
#include "svg_plot.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "tessera/report/page.hpp"

namespace tessera::report {
namespace {

// Pixels of the picture; the loss is drawn from `top` down to the rate's strip, or to `bottom`
// where there is none.
constexpr double width = 960, height = 540;
constexpr double left = 68, right = 884, top = 104, bottom = 484;
constexpr double strip_top = 436, strip_gap = 20;
constexpr std::size_t pixel_columns = static_cast<std::size_t>(right - left);

// Colors are plain properties and the dark ones override them: a viewer that knows no media queries
// shows the light picture.
constexpr std::string_view style = R"(<style>
text{font-family:system-ui,-apple-system,"Segoe UI","Helvetica Neue",Helvetica,Arial,"DejaVu Sans",sans-serif;font-size:13px;fill:#57606a}
.page{fill:#ffffff}.title{font-size:21px;font-weight:600;fill:#1f2328}.grid{stroke:#e4e8ec}.axis{stroke:#9aa4ae}
.raw,.mean{fill:none;stroke:#0a66c2;stroke-linejoin:round;stroke-linecap:round}.raw{stroke-width:1;stroke-opacity:.38}.mean{stroke-width:2.5}
.dot{fill:#0a66c2;stroke:#ffffff;stroke-width:2}.last{font-size:15px;font-weight:600;fill:#0a66c2}
.rate{fill:#b26a00;fill-opacity:.10;stroke:none}.edge{fill:none;stroke:#b26a00;stroke-opacity:.45}
@media (prefers-color-scheme:dark){text{fill:#9aa4ae}.page{fill:#0d1117}.title{fill:#e6edf3}.grid{stroke:#21282f}.axis{stroke:#59636e}
.raw,.mean{stroke:#58a6ff}.dot{fill:#58a6ff;stroke:#0d1117}.last{fill:#58a6ff}.rate{fill:#e3a03a}.edge{stroke:#e3a03a}}
</style>
)";

constexpr double largest_loss = 1e30;  ///< beyond it a loss is as good as infinite: a gap

struct Curves {
  std::vector<Point> raw, rate;
};

std::vector<double> finite_values(std::span<const Point> points) {
  std::vector<double> values;
  for (const Point& p : points)
    if (std::isfinite(p.y)) values.push_back(p.y);
  return values;
}

struct Limits {
  double low, high;
};

/// All losses but the one in two hundred at either side: a spike must not flatten the curve. What
/// the run began with always counts.
std::optional<Limits> usual_losses(std::span<const Point> raw) {
  std::vector<double> values = finite_values(raw);
  if (values.empty()) return std::nullopt;
  const double beginning =
      std::ranges::max(std::span(values).first(std::min<std::size_t>(5, values.size())));
  std::ranges::sort(values);
  const std::size_t cut = (values.size() + 180) / 200;
  return Limits{values[cut], std::max(beginning, values[values.size() - 1 - cut])};
}

Curves curves_of(std::span<const metrics::StepRecord> records) {
  Curves curves;
  for (const metrics::StepRecord& r : records) {
    const bool drawable = std::abs(r.loss) < largest_loss;
    curves.raw.push_back({static_cast<double>(r.step),
                          drawable ? r.loss : std::numeric_limits<double>::quiet_NaN()});
    curves.rate.push_back({static_cast<double>(r.step), r.lr});
  }
  return curves;
}

/// Of the losses drawn in to `limits`, so that a spike is a dent and not a mountain.
std::vector<Point> mean_of(std::span<const Point> raw, const Limits& limits) {
  std::vector<double> losses(raw.size());
  std::ranges::transform(raw, losses.begin(), [&](const Point& p) {
    return std::isfinite(p.y) ? std::clamp(p.y, limits.low, limits.high) : p.y;
  });
  const std::vector<double> smoothed = smooth(losses, std::max<std::size_t>(2, raw.size() / 60));
  std::vector<Point> mean(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) mean[i] = {raw[i].x, smoothed[i]};
  return mean;
}

Scale loss_scale(const Limits& limits, double floor) {
  const double margin = limits.high > limits.low ? 0.05 * (limits.high - limits.low)
                                                 : std::max(0.5, 0.1 * std::abs(limits.high));
  return {limits.low - margin, limits.high + margin, floor, top};
}

std::string line(std::string_view name, double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", name, x1,
      y1, x2, y2);
}

std::string text(double x, double y, std::string_view anchor, std::string_view content,
                 std::string_view name = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, name.empty() ? "" : fmt::format(" class=\"{}\"", name),
                     escape(content));
}

std::string path(std::string_view name, const std::string& data) {
  return data.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", name, data);
}

std::string axes(const Scale& x, const std::optional<Scale>& y) {
  std::string out;
  if (y) {
    const double step = tick_step(y->from_low, y->from_high, 7);
    for (const double value : ticks(y->from_low, y->from_high, step)) {
      out += line("grid", left, (*y)(value), right, (*y)(value));
      out += text(left - 10, (*y)(value) + 4.5, "end", tick_label(value, step));
    }
  }
  for (const double value :
       ticks(x.from_low, x.from_high, tick_step(x.from_low, x.from_high, 9, 1))) {
    out += line("axis", x(value), bottom, x(value), bottom + 5);
    out += text(x(value), bottom + 21, "middle", count_label(value));
  }
  out += line("axis", left, bottom, right, bottom);
  return out + text((left + right) / 2, bottom + 44, "middle", "step") +
         text(left - 10, top - 14, "end", "loss");
}

double peak_rate(const Curves& curves) {
  const std::vector<double> values = finite_values(curves.rate);
  return values.empty() ? 0 : std::ranges::max(values);
}

/// 2e-3: mantissa and exponent without padding.
std::string rate_label(double rate) {
  const double exponent = rate > 0 ? std::floor(std::log10(rate) + 1e-9) : 0;
  return fmt::format("{:.3g}{}", rate / std::pow(10, exponent),
                     exponent == 0 ? "" : fmt::format("e{:g}", exponent));
}

/// The learning rate from 0 to its peak > 0, in a strip of its own over the same steps.
std::string rate_strip(const Curves& curves, const Scale& x, double peak) {
  const Scale y{0, peak, bottom, strip_top};
  std::vector<Point> points = thin(curves.rate, pixel_columns / 4);
  const std::string edge = path_data(points, x, y);
  std::erase_if(points, [](const Point& p) { return !std::isfinite(p.y); });
  const double last = points.back().y;
  points.insert(points.begin(), {points.front().x, 0});
  points.push_back({points.back().x, 0});
  return path("rate", path_data(points, x, y)) + path("edge", edge) +
         line("grid", left, strip_top, right, strip_top) +
         text(left - 10, strip_top + 4.5, "end", rate_label(peak)) +
         text(left - 10, bottom + 4.5, "end", "lr 0") +
         (last < peak ? text(right + 10, y(last) + 4.5, "start", rate_label(last)) : "");
}

/// Value of the mean where it ends, next to its last point.
std::string end_label(std::span<const Point> mean, const Scale& x, const Scale& y) {
  const auto last =
      std::find_if(mean.rbegin(), mean.rend(), [](const Point& p) { return std::isfinite(p.y); });
  if (last == mean.rend()) return "";
  return fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n", x(last->x),
                     y(last->y)) +
         text(x(last->x) + 12, y(last->y) + 5, "start", fmt::format("{:.3f}", last->y), "last");
}

std::string legend() {
  const auto entry = [](double x, std::string_view name, std::string_view label) {
    return line(name, x, top - 18.5, x + 20, top - 18.5) + text(x + 27, top - 14, "start", label);
  };
  return entry(right - 214, "mean", "moving mean") + entry(right - 88, "raw", "each step");
}

std::string header(const LossCurveOptions& options, double floor) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" "
             "width=\"{0:g}\" height=\"{1:g}\" "
             "role=\"img\">\n"
             "<title>{2}</title>\n{3}"
             "<clipPath id=\"frame\"><rect x=\"{4:g}\" y=\"{5:g}\" width=\"{6:g}\" "
             "height=\"{7:g}\"/></clipPath>\n"
             "<rect class=\"page\" width=\"{0:g}\" height=\"{1:g}\"/>\n",
             width, height, escape(options.title), style, left, top, right - left, floor - top) +
         text(left - 40, 42, "start", options.title, "title") +
         (options.subtitle.empty() ? "" : text(left - 40, 64, "start", options.subtitle));
}

/// The frame cuts off what exceeds the scale.
std::string loss_curves(std::span<const Point> raw, std::span<const Point> mean, const Scale& x,
                        const Scale& y) {
  return "<g clip-path=\"url(#frame)\">\n" +
         path("raw", path_data(thin(raw, pixel_columns), x, y)) +
         path("mean", path_data(thin(mean, pixel_columns / 2), x, y)) + "</g>\n" +
         end_label(mean, x, y) + legend();
}

std::string empty_frame(double floor, std::string_view why) {
  return text((left + right) / 2, (top + floor) / 2, "middle", why);
}

Scale step_scale(std::span<const metrics::StepRecord> records) {
  if (records.empty()) return {0, 1, left, right};
  const auto first = static_cast<double>(records.front().step - 1);
  // first + 1 may be first
  const double next = std::nextafter(first + 1, std::numeric_limits<double>::infinity());
  return {first, std::max(next, static_cast<double>(records.back().step)), left, right};
}

}  // namespace

std::string loss_curve_svg(std::span<const metrics::StepRecord> records,
                           const LossCurveOptions& options) {
  const Curves curves = curves_of(records);
  const Scale x = step_scale(records);
  const double peak = options.learning_rate ? peak_rate(curves) : 0;
  const double floor = peak > 0 ? strip_top - strip_gap : bottom;
  const std::optional<Limits> limits = usual_losses(curves.raw);
  const std::optional<Scale> y = limits ? std::optional(loss_scale(*limits, floor)) : std::nullopt;
  std::string svg =
      header(options, floor) + axes(x, y) + (peak > 0 ? rate_strip(curves, x, peak) : "");
  svg += y ? loss_curves(curves.raw, mean_of(curves.raw, *limits), x, *y)
           : empty_frame(floor, records.empty() ? "no steps yet" : "no finite loss");
  return svg + "</svg>\n";
}

void write_loss_curve(const std::filesystem::path& svg,
                      std::span<const metrics::StepRecord> records,
                      const LossCurveOptions& options) {
  write_file_atomically(svg, loss_curve_svg(records, options));
}

void write_loss_curve(const std::filesystem::path& svg, const std::filesystem::path& metrics_jsonl,
                      const LossCurveOptions& options) {
  write_loss_curve(svg, metrics::read_records(metrics_jsonl), options);
}

}  // namespace tessera::report
