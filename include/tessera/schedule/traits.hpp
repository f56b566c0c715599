// SPDX-License-Identifier: Apache-2.0
// The pipeline schedules that Tessera has, and the rules of each: one table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/schedule/stage_map.hpp"

namespace tessera::schedule {

enum class Kind : std::uint8_t {
  one_f_one_b,
  eager_one_f_one_b,
  gpipe,
  interleaved,
  looped_bfs,
  zb_h1,
  interleaved_zero_bubble,
  zbv,
  dual_pipe_v,
};

/// Stages of each rank: one, exactly two, or two and more.
enum class StagesPerRank : std::uint8_t { one, two, several };

/// Do `stages` pipeline stages give each of `ranks` ranks as many as `each` says?
bool fits(StagesPerRank each, std::int64_t stages, std::int64_t ranks);

/// The map that a schedule was made for: StageMap::loop or StageMap::v.
enum class MapShape : std::uint8_t { loop, v };

struct Traits {
  Kind kind;
  std::string_view name;  ///< PyTorch's spelling, and ours: ZBH1
  StagesPerRank stages;
  MapShape map;
  int microbatches_per_rank;  ///< fewer do not fill the pipeline; 0: any number is allowed
  bool equal_rounds;     ///< microbatches fill rounds of equal size, of one or more for each rank
  bool keeps_all;        ///< keeps the activations of all microbatches until the first backward
  bool splits_backward;  ///< has I and W instead of some or all B
  bool pairs;            ///< has F and B that may run together, see Action::overlaps_next
  std::string_view paper;

  /// Stages of each rank where nothing else is asked for: 1 or 2.
  int usual_stages() const { return stages == StagesPerRank::one ? 1 : 2; }
  StageMap usual_map(int ranks, int stages_per_rank) const;
  StageMap usual_map(int ranks) const { return usual_map(ranks, usual_stages()); }
  int least_microbatches(int ranks) const { return microbatches_per_rank * ranks; }
  /// Do `microbatches` fill equal rounds on `ranks` ranks? True if the schedule has no rounds.
  bool fills_rounds(std::int64_t microbatches, std::int64_t ranks) const;
};

/// All schedules, in the order of their kinds.
std::span<const Traits> all_traits();
const Traits& traits_of(Kind kind);
/// By PyTorch's spelling; null for any other name, and for a schedule from a file.
const Traits* find_traits(std::string_view name);
/// The names of all schedules.
std::vector<std::string_view> names();

}  // namespace tessera::schedule
