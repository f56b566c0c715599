// SPDX-License-Identifier: Apache-2.0
// Schedules as PyTorch writes them: one row a rank, a cell an action ("0F0", "2I0", "2W0", "1B3":
// stage, letter, microbatch), an empty cell a rank that waits. "(0F0;7B1)OVERLAP_F_B" is a
// pair, see Action::overlaps_next; with other actions in it, or of one stage, they come one after
// the other.
#pragma once

#include <filesystem>
#include <string>

#include "tessera/schedule/action.hpp"
#include "tessera/schedule/stage_map.hpp"
#include "tessera/schedule/timeline.hpp"

namespace tessera::schedule {

/// Computations alone, and what follows from them: a stage is on the rank whose row names it,
/// microbatches are 0 to the largest number.
struct Table {
  ActionLists computations;
  StageMap map;
  int microbatches = 0;
};

/// Throws Error(usage) with file:row:column for a cell that is not an action, a stage on two rows,
/// or a transfer (Tessera puts its own); Error(data) when the file cannot be read.
Table read_csv(const std::filesystem::path& file);

/// A column for each unit of time (F, I and W take one, B two), so that waiting shows.
std::string to_csv(const Timeline& unit_timeline);

}  // namespace tessera::schedule
