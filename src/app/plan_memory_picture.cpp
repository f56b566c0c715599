// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chart.hpp"
#include "plan_pictures.hpp"

namespace tessera::app {
namespace {

using planner::kGiB;
using planner::MemoryPoint;
using planner::RankMemory;
using schedule::PipelineRank;

// Pixels.
constexpr double kWidth = 1200, kLeft = 84, kRight = 150, kTop = 60, kRow = 64, kGap = 12,
                 kBottom = 60;
constexpr int kColumns = 480, kMostRows = 8;

/// The most of each of `kColumns` equal parts of the time.
std::vector<double> columns_of(const std::vector<MemoryPoint>& points, double seconds) {
  std::vector<double> out(kColumns, 0);
  const auto raise = [&](double at, double bytes) {
    const int column = std::clamp(static_cast<int>(at / seconds * kColumns), 0, kColumns - 1);
    double& most = out[static_cast<std::size_t>(column)];
    most = std::max(most, bytes);
  };
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const MemoryPoint &from = points[i], &to = points[i + 1];
    const double steps = std::ceil((to.seconds - from.seconds) / seconds * kColumns * 2);
    for (double step = 0; step < steps; ++step) {
      const double share = step / steps;
      raise(from.seconds + share * (to.seconds - from.seconds),
            from.bytes + share * (to.bytes - from.bytes));
    }
    raise(to.seconds, to.bytes);
  }
  return out;
}

/// At most kMostRows of the ranks, the first and the last among them.
std::vector<PipelineRank> shown_of(int ranks) {
  std::vector<PipelineRank> out;
  const int rows = std::min(ranks, kMostRows);
  for (int row = 0; row < rows; ++row)
    out.emplace_back(rows == 1 ? 0 : row * (ranks - 1) / (rows - 1));
  return out;
}

class Row {
 public:
  Row(double top, double most_bytes) : bottom_(top + kRow), scale_(kRow / most_bytes) {}

  double y(double bytes) const { return bottom_ - bytes * scale_; }
  static double x(double share) { return kLeft + share * (kWidth - kLeft - kRight); }

  std::string svg(PipelineRank rank, const RankMemory& memory, double seconds, double limit) const {
    Pixels area{{x(0), y(memory.constant)}};
    double most = 0;
    const std::vector<double> columns = columns_of(memory.activations, seconds);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      area.emplace_back(x((static_cast<double>(i) + .5) / kColumns),
                        y(memory.constant + columns[i]));
      most = std::max(most, columns[i]);
    }
    area.emplace_back(x(1), y(memory.constant));
    return svg_text(24, bottom_ - kRow / 2 + 4, fmt::format("rank {}", rank)) +
           svg_area({{x(0), bottom_},
                     {x(0), y(memory.constant)},
                     {x(1), y(memory.constant)},
                     {x(1), bottom_}},
                    Hue::grey) +
           svg_area(area, Hue::blue) + svg_line({{x(0), y(limit)}, {x(1), y(limit)}}, Hue::red) +
           svg_text(
               x(1) + 10, bottom_ - kRow / 2 + 4,
               fmt::format("{:.1f} of {:.1f} GiB", (memory.constant + most) / kGiB, limit / kGiB));
  }

 private:
  double bottom_, scale_;
};

}  // namespace

std::string memory_picture(const PicturedJob& job) {
  const auto ranks = planner::memory_over_step(job.work, job.machine, job.stack);
  double seconds = 0, most = job.machine.memory_bytes;
  for (const RankMemory& memory : ranks) {
    if (!memory.activations.empty()) seconds = std::max(seconds, memory.activations.back().seconds);
    for (const MemoryPoint& point : memory.activations)
      most = std::max(most, memory.constant + point.bytes);
  }
  std::string svg;
  double top = kTop;
  for (const PipelineRank rank : shown_of(job.work.pipeline.ranks())) {
    svg += Row(top, most).svg(rank, ranks[rank], seconds, job.machine.memory_bytes);
    top += kRow + kGap;
  }
  svg += svg_text(kLeft, top + 8, fmt::format("0 s")) +
         svg_text(Row::x(1), top + 8, fmt::format("{:.3g} s", seconds), "right");
  const std::string has = fmt::format("what a {} has", planner::unit_of(job.machine));
  double left = kLeft + 90;
  for (const auto& [hue, words, width] :
       {std::tuple{Hue::grey, "weights, gradients, moments and buffers", 280.0},
        std::tuple{Hue::blue, "activations", 130.0}, std::tuple{Hue::red, has.c_str(), 130.0}}) {
    svg +=
        svg_area({{left, top - 2}, {left + 14, top - 2}, {left + 14, top + 12}, {left, top + 12}},
                 hue) +
        svg_text(left + 20, top + 9, words);
    left += width;
  }
  return svg_page(kWidth, top + kBottom - 20, "Memory of a step: " + name_of(job), svg);
}

}  // namespace tessera::app
