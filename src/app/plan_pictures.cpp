// SPDX-License-Identifier: Apache-2.0
#include "plan_pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "chart.hpp"
#include "tessera/planner/price.hpp"
#include "tessera/report/page.hpp"

namespace tessera::app {
namespace {

using planner::kGiB;
using Values = std::vector<std::pair<double, double>>;

Values values_of(const std::vector<planner::ScalingPoint>& points) {
  Values out;
  for (const planner::ScalingPoint& point : points)
    out.emplace_back(point.gpus, point.price.tokens_per_second_per_gpu);
  return out;
}

std::string dots(const Chart& chart, const std::vector<planner::ScalingPoint>& points, Hue hue,
                 const std::string& unit) {
  std::string svg;
  const double first = points.front().price.tokens_per_second_per_gpu;
  for (const planner::ScalingPoint& point : points) {
    const double speed = point.price.tokens_per_second_per_gpu;
    const auto [x, y] = chart.at(point.gpus, speed);
    svg += svg_dot(
        x, y, hue, !point.price.fits,
        fmt::format("{0} {1}s: {2:.0f} tokens/s a {1}, {3:.1f} % of the first{4}", point.gpus, unit,
                    speed, 100 * speed / first, point.price.fits ? "" : ", does not fit"));
  }
  if (points.size() == 1) return svg;
  const auto [x, y] = chart.at(points.back().gpus, points.back().price.tokens_per_second_per_gpu);
  return svg + svg_text(x - 6, y - 10,
                        fmt::format("{:.0f} %",
                                    100 * points.back().price.tokens_per_second_per_gpu / first),
                        "right");
}

/// Dots with numbers, and a list of the longest kernels in the corner above the roofs.
std::string labelled_kernels(const Chart& chart, const std::vector<planner::Kernel>& kernels) {
  constexpr int kListed = 9;
  double seconds = 0;
  for (const planner::Kernel& kernel : kernels) seconds += kernel.seconds;
  std::string svg;
  int number = 0;
  for (const planner::Kernel& kernel : kernels) {
    const std::string words =
        fmt::format("{}: {:.0f} %", kernel.name, 100 * kernel.seconds / seconds);
    const auto [x, y] = chart.at(kernel.flops / kernel.bytes, kernel.flops / kernel.seconds);
    svg += svg_dot(x, y, kernel.name == "memory-bound" ? Hue::brown : Hue::blue, false, words);
    if (++number > kListed) continue;
    svg += svg_text(x, y + (number % 2 == 0 ? -9 : 18), std::to_string(number), "middle");
    svg += svg_text(100, 72 + 18 * number, fmt::format("{}  {}", number, words));
  }
  return svg;
}

}  // namespace

std::string name_of(const PicturedJob& job) {
  return fmt::format("{} on {} x {}", job.work.model.name, job.work.gpus, job.machine.name);
}

const std::vector<std::string>& picture_names() {
  static const std::vector<std::string> names{"memory", "roofline", "scaling", "timeline"};
  return names;
}

std::string picture_of(const std::string& name, const PicturedJob& job) {
  if (name == "memory") return memory_picture(job);
  if (name == "timeline") return timeline_picture(job);
  return name == "roofline" ? roofline_picture(job) : scaling_picture(job);
}

std::string timeline_picture(const PicturedJob& job) {
  const schedule::Timeline timeline = planner::step_timeline(job.work, job.machine, job.stack);
  const int microbatches = job.work.pipeline.microbatches;
  return to_svg(timeline, job.work.pipeline.map,
                report::escape(fmt::format(
                    "{}: {} microbatch{} in {:.3g} s, bubble {:.1f} %", name_of(job), microbatches,
                    microbatches == 1 ? "" : "es", timeline.end(), 100 * timeline.bubble())));
}

std::string scaling_picture(const PicturedJob& job) {
  const planner::Scaling found = planner::scaling(job.job, job.work.gpus, job.machine, job.stack);
  const std::string unit = planner::unit_of(job.machine);
  double most = 0, fewest = job.work.gpus, largest = 2.0 * job.work.gpus;
  for (const auto* points : {&found.larger_batch, &found.same_batch})
    for (const planner::ScalingPoint& point : *points) {
      most = std::max(most, point.price.tokens_per_second_per_gpu);
      fewest = std::min<double>(fewest, point.gpus);
      largest = std::max<double>(largest, point.gpus);
    }
  const Chart chart({fewest, largest, true}, {0, 1.1 * most});
  std::string svg = chart.axes(
      unit + "s", fmt::format("tokens/s a {}; hollow where memory does not suffice", unit));
  for (const auto& [points, hue] :
       {std::pair{&found.larger_batch, Hue::blue}, {&found.same_batch, Hue::brown}}) {
    if (points->empty()) continue;
    svg += chart.line(values_of(*points), hue) + dots(chart, *points, hue, unit);
  }
  const double y = Chart::kHeight - 76;
  svg += svg_line({{100, y - 20}, {124, y - 20}}, Hue::blue) +
         svg_text(130, y - 16, "as many sequences a step on each " + unit) +
         svg_line({{100, y}, {124, y}}, Hue::brown) +
         svg_text(130, y + 4, "as many sequences a step");
  return svg_page(Chart::kWidth, Chart::kHeight, "Scaling of " + name_of(job), svg);
}

std::string roofline_picture(const PicturedJob& job) {
  const planner::Roofs roofs = planner::roofs_of(job.work, job.machine);
  std::vector<planner::Kernel> kernels = planner::kernels_of(job.work, job.machine, job.stack);
  std::ranges::sort(kernels, std::greater<>(), &planner::Kernel::seconds);
  double densest = 0;
  for (const planner::Kernel& kernel : kernels)
    densest = std::max(densest, kernel.flops / kernel.bytes);
  const Span x{0.5, std::max(2.0 * densest, 4 * roofs.peak / roofs.memory), true};
  const Chart chart(x, {roofs.memory * x.least, 2 * roofs.peak, true});
  std::string svg = chart.axes("FLOPs for each byte of memory",
                               fmt::format("FLOP/s of a {}", planner::unit_of(job.machine)));
  for (const auto& [roof, dashed] : {std::pair{roofs.peak, true}, {roofs.ceiling, false}})
    svg +=
        chart.line({{x.least, roofs.memory * x.least}, {roof / roofs.memory, roof}, {x.most, roof}},
                   Hue::grey, dashed);
  const auto label = [&](double at, double roof, const std::string& words) {
    const auto [left, top] = chart.at(at, roof);
    svg += svg_text(left, top - 6, words, "right");
  };
  label(x.most, roofs.peak, fmt::format("data sheet {}", short_number(roofs.peak)));
  label(4.5 * roofs.ceiling / roofs.memory, roofs.ceiling / 1.5,
        fmt::format("best product {}", short_number(roofs.ceiling)));
  svg += labelled_kernels(chart, kernels);
  return svg_page(Chart::kWidth, Chart::kHeight,
                  "Kernels of a block and the output: " + name_of(job), svg);
}

}  // namespace tessera::app
