// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other once a step, with the reduction of the loss.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tessera::train {

/// A vote holds for all ranks when one rank has cast it.
struct StepVotes {
  bool stop = false;        ///< a signal asks the run to end after this step
  bool interrupt = false;   ///< so does an interrupt (Ctrl-C)
  bool save = false;        ///< a checkpoint is due
  bool time_is_up = false;  ///< the allocation ends before another step and its checkpoint would

  /// Does the run end after this step?
  bool ends() const { return stop || interrupt || time_is_up; }
  bool any() const { return ends() || save; }

  /// As numbers whose sums over ranks from_counts() understands.
  static constexpr std::size_t kCounts = 4;
  std::array<std::int64_t, kCounts> counts() const { return {stop, interrupt, save, time_is_up}; }
  static StepVotes from_counts(std::span<const std::int64_t, kCounts> sums) {
    return {sums[0] > 0, sums[1] > 0, sums[2] > 0, sums[3] > 0};
  }
};

}  // namespace tessera::train
