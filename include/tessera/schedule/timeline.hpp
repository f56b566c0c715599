// SPDX-License-Identifier: Apache-2.0
// When each action of a schedule would run, given how long actions take; as numbers and as a
// picture.
#pragma once

#include <string>
#include <vector>

#include "tessera/schedule/action.hpp"
#include "tessera/schedule/stage_map.hpp"

namespace tessera::schedule {

/// Of one stage and microbatch, in any unit; B takes input + weight.
struct Durations {
  double forward = 1, input = 1, weight = 1;
  double transfer = 0;  ///< from the end of a computation until another rank may use its result
  /// What a pair takes less than its F and its B or I one after the other: of F, of B or I.
  double hidden_forward = 0, hidden_input = 0;
  double of(ActionKind kind) const;
};

/// Those of a pair have the pair's times.
struct TimedAction {
  Action action;
  double begin, end;
};

struct Timeline {
  IndexedVector<PipelineRank, std::vector<TimedAction>> ranks;

  double begin() const;
  double end() const;
  /// 1 - busy / (from the first to the last action of any rank), busy being the mean over ranks.
  double bubble() const;
  /// The same within one rank's own first and last action.
  double bubble_of(PipelineRank rank) const;
};

/// Each rank runs its computations in order, as soon as their inputs are there; transfers in the
/// lists are passed over. List r has computations of stages on rank r alone. Throws Error(usage)
/// when the lists wait for each other, naming the ranks and what they wait for. Takes time linear
/// in the actions, as do the other functions of this component.
Timeline simulate(const ActionLists& lists, const StageMap& map, const Durations& durations = {});

/// The same for stages that differ. `transfer` is that of the stage that receives. Contract: one
/// element for each stage of the map.
Timeline simulate(const ActionLists& lists, const StageMap& map,
                  const IndexedVector<StageIndex, Durations>& durations);

/// Ranks as rows, time to the right, a box for each action: blue forward, green backward, lighter
/// and darker for I and W, the shade by stage on the rank; the microbatch's number where it fits.
/// Readable on light and on dark pages. `title` is XML text, escaped where a user names a part.
std::string to_svg(const Timeline& timeline, const StageMap& map, const std::string& title);

}  // namespace tessera::schedule
