// SPDX-License-Identifier: Apache-2.0
// Ranks that hold up a run, step after step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera::metrics {

class LateRanks {
 public:
  /// In a step of `step_seconds`, `rank` came to the collective calls last, `late` seconds after
  /// all others.
  void step(int rank, double late, double step_seconds);
  /// A line, with its end, for a rank that is late by 2 % of the step, and 1 ms, in most of at
  /// least 5 steps; else empty: "rank 12 arrives 38 ms late in 94 % of steps".
  std::string note() const;

 private:
  std::int64_t steps_ = 0;
  std::map<int, std::vector<double>> late_;  ///< seconds, by rank
};

}  // namespace tessera::metrics
