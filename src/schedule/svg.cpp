// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tessera/schedule/timeline.hpp"

namespace tessera::schedule {
namespace {

// Pixels.
constexpr double kWidth = 1200, kLeft = 64, kRight = 24, kTop = 64, kRow = 26, kGap = 4,
                 kBottom = 40;

constexpr std::string_view kStyle = R"(<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;font-size:12px;fill:#57606a}
.page{fill:#ffffff}.title{font-size:18px;font-weight:600;fill:#1f2328}.number{font-size:10px;fill:#ffffff;text-anchor:middle}
.idle{fill:#eef1f4}.F{fill:#0a66c2}.B{fill:#2e7d32}.I{fill:#4c9a50}.W{fill:#9a6700}
@media (prefers-color-scheme:dark){text{fill:#9aa4ae}.page{fill:#0d1117}.title{fill:#e6edf3}.number{fill:#ffffff}.idle{fill:#1b222a}}
</style>
)";

constexpr char letter(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return 'F';
    case ActionKind::input_gradient:
      return 'I';
    case ActionKind::weight_gradient:
      return 'W';
    default:
      return 'B';
  }
}

class Picture {
 public:
  Picture(const Timeline& timeline, const StageMap& map)
      : timeline_(timeline),
        map_(map),
        begin_(timeline.begin()),
        scale_((kWidth - kLeft - kRight) / (timeline.end() - begin_)),
        turn_(map.stages()) {
    for (const PipelineRank rank : map.each_rank())
      for (std::size_t turn = 0; turn < map.stages_of(rank).size(); ++turn)
        turn_[map.stages_of(rank)[turn]] = turn;
  }

  std::string svg(const std::string& title) const {
    const double height = bottom() + kBottom;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
        "height=\"{1:g}\" "
        "role=\"img\">\n"
        "{2}<rect class=\"page\" width=\"{0:g}\" height=\"{1:g}\"/>\n<text class=\"title\" "
        "x=\"{3:g}\" "
        "y=\"36\">{4}</text>\n",
        kWidth, height, kStyle, kLeft, title);
    for (const PipelineRank rank : timeline_.ranks.indexes()) svg += row(rank);
    return svg + legend() + "</svg>\n";
  }

 private:
  double top(PipelineRank rank) const { return kTop + rank.value() * (kRow + kGap); }
  double bottom() const { return top(PipelineRank(timeline_.ranks.size())); }
  double x(double time) const { return kLeft + (time - begin_) * scale_; }

  std::string row(PipelineRank rank) const {
    std::string svg = fmt::format(
        "<text x=\"8\" y=\"{:g}\">rank {}</text>\n<rect class=\"idle\" x=\"{:g}\" y=\"{:g}\" "
        "width=\"{:g}\" "
        "height=\"{:g}\"/>\n",
        top(rank) + 17, rank, kLeft, top(rank), kWidth - kLeft - kRight, kRow);
    const TimedAction* before = nullptr;
    for (const TimedAction& timed : timeline_.ranks[rank]) {
      const bool second = before && before->action.overlaps_next;
      svg += box(rank, timed,
                 timed.action.overlaps_next ? Lane{0, kRow / 2}
                 : second                   ? Lane{kRow / 2, kRow / 2}
                                            : Lane{0, kRow});
      before = &timed;
    }
    return svg;
  }

  /// Of a row: the two of a pair share it.
  struct Lane {
    double top, height;
  };

  /// Later stages of a rank are paler, so that the chunks can be told apart.
  std::string box(PipelineRank rank, const TimedAction& timed, const Lane& lane) const {
    const std::size_t stages = map_.stages_of(rank).size();
    const std::size_t turn = turn_[timed.action.stage];
    const double opacity = 1 - 0.45 * static_cast<double>(turn) / static_cast<double>(stages);
    const double width = (timed.end - timed.begin) * scale_;
    std::string svg = fmt::format(
        "<rect class=\"{}\" fill-opacity=\"{:.2f}\" x=\"{:.2f}\" y=\"{:g}\" width=\"{:.2f}\" "
        "height=\"{:g}\"><title>{}</title></rect>\n",
        letter(timed.action.kind), opacity, x(timed.begin), top(rank) + lane.top,
        std::max(0.5, width - 0.6), lane.height, to_string(timed.action));
    if (width >= 14)
      svg += fmt::format("<text class=\"number\" x=\"{:.2f}\" y=\"{:g}\">{}</text>\n",
                         x((timed.begin + timed.end) / 2),
                         top(rank) + lane.top + lane.height / 2 + 4, timed.action.microbatch);
    return svg;
  }

  std::string legend() const {
    std::string svg;
    double left = kLeft;
    for (const auto& [name, text] : {std::pair{"F", "forward"},
                                     {"B", "backward"},
                                     {"I", "input gradient"},
                                     {"W", "weight gradients"}}) {
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{:g}\" y=\"{:g}\" width=\"14\" height=\"14\"/><text x=\"{:g}\" "
          "y=\"{:g}\">{}</text>\n",
          name, left, bottom() + 10, left + 20, bottom() + 22, text);
      left += 150;
    }
    return svg;
  }

  const Timeline& timeline_;
  const StageMap& map_;
  double begin_;                                 ///< of the first action
  double scale_;                                 ///< pixels of a unit of time
  IndexedVector<StageIndex, std::size_t> turn_;  ///< its place among the stages of its rank
};

}  // namespace

std::string to_svg(const Timeline& timeline, const StageMap& map, const std::string& title) {
  return Picture(timeline, map).svg(title);
}

}  // namespace tessera::schedule
