// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/stage_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tessera/metrics/human.hpp"

namespace tessera::plan {
namespace {

using model::ModelSpec;
using schedule::StageIndex;

class StageTable {
 public:
  StageTable(const ModelSpec& model, const StageRanges& ranges, const schedule::StageMap& map,
             const StageTableOptions& options)
      : model_(model), ranges_(ranges), map_(map), options_(options) {
    // Forward once, backward twice.
    for (const double flops : flops_of_cells(model, options.seq))
      before_.push_back(before_.back() +
                        3 * flops * static_cast<double>(options.microbatch_tokens));
  }

  std::string text() const {
    std::string text = fmt::format("{:<6}{:<5}{:<54}{:>9}{:>11}{:>7}{:>13}\n", "stage", "rank",
                                   "cells", "params", "FLOP", "of max", "crosses");
    const double most = dearest(ranges_);
    for (const StageIndex stage : map_.each_stage()) {
      const Range& range = ranges_[stage];
      text += fmt::format(
          "{:<6}{:<5}{:<54}{:>9}{:>11}{:>6.0f}%{:>13}\n", stage.value(),
          map_.rank_of(stage).value(), cells(range), metrics::human_count(parameters(range)),
          metrics::human_count(flops(range)), most > 0 ? 100 * flops(range) / most : 0.0,
          stage == map_.last() ? "-" : metrics::human_bytes(crossing(range.end())));
    }
    for (const StageIndex stage : map_.each_stage())
      if (stage != map_.last() && !between_units(ranges_[stage].end())) text += judged(stage, most);
    return text;
  }

 private:
  const std::string& cell(std::int64_t i) const {
    return model_.cells[static_cast<std::size_t>(i)].name;
  }
  std::string cells(const Range& range) const {
    return range.size == 1 ? cell(range.begin)
                           : fmt::format("{} .. {}", cell(range.begin), cell(range.end() - 1));
  }
  double flops(const Range& range) const {
    return before_[static_cast<std::size_t>(range.end())] -
           before_[static_cast<std::size_t>(range.begin)];
  }
  double dearest(const StageRanges& ranges) const {
    double most = 0;
    for (const Range& range : ranges) most = std::max(most, flops(range));
    return most;
  }
  double parameters(const Range& range) const {
    std::set<int> params;
    for (std::int64_t i = range.begin; i < range.end(); ++i)
      params.insert(model_.cells[static_cast<std::size_t>(i)].params.begin(),
                    model_.cells[static_cast<std::size_t>(i)].params.end());
    double count = 0;
    for (const int param : params)
      count += static_cast<double>(
          element_count(model_.params[static_cast<std::size_t>(param)].global_shape));
    return count;
  }
  std::int64_t crossing(std::int64_t cut) const {
    return crossing_features(model_.cells[static_cast<std::size_t>(cut)]) *
           options_.microbatch_tokens * options_.element_bytes;
  }
  bool between_units(std::int64_t cut) const {
    return std::ranges::any_of(model_.units,
                               [cut](const model::UnitSpec& unit) { return unit.begin == cut; });
  }

  /// The split with the cut after `stage` moved to `to`; its slowest stage.
  double moved(StageIndex stage, std::int64_t to) const {
    StageRanges ranges = ranges_;
    const std::int64_t end = ranges[stage + 1].end();
    ranges[stage].size = to - ranges[stage].begin;
    ranges[stage + 1] = {to, end - to};
    return ranges[stage].size > 0 && end > to ? dearest(ranges) : HUGE_VAL;
  }

  /// The cut behind `stage`.
  std::string judged(StageIndex stage, double most) const {
    const std::int64_t cut = ranges_[stage].end();
    const auto unit = std::ranges::find_if(
        model_.units, [cut](const model::UnitSpec& u) { return u.begin < cut && cut < u.end; });
    const bool first = moved(stage, unit->begin) <= moved(stage, unit->end);
    const std::int64_t other = first ? unit->begin : unit->end;
    const double gained = (moved(stage, other) - most) / options_.flops_per_second;
    const std::int64_t more = crossing(cut) - crossing(other);
    const double paid = 2 * static_cast<double>(more) / options_.bytes_per_second;
    return fmt::format(
        "cut at {}: gains {:.2g} s a microbatch over {}, moves {} more each way ({:.2g} s at "
        "{}/s){}\n",
        cell(cut), gained, cell(other), metrics::human_bytes(more), paid,
        metrics::human_bytes(static_cast<std::int64_t>(options_.bytes_per_second)),
        gained < paid ? fmt::format(". WARNING: it is slower than {}", cell(other)) : "");
  }

  const ModelSpec& model_;
  const StageRanges& ranges_;
  const schedule::StageMap& map_;
  const StageTableOptions& options_;
  std::vector<double> before_{0};  ///< FLOPs of a microbatch in front of each cell
};

}  // namespace

std::string stage_table(const ModelSpec& model, const StageRanges& ranges,
                        const schedule::StageMap& map, const StageTableOptions& options) {
  return StageTable(model, ranges, map, options).text();
}

}  // namespace tessera::plan
