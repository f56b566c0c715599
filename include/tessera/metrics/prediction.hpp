// SPDX-License-Identifier: Apache-2.0
// What a run was expected to take beside what it took.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/metrics/time_table.hpp"

namespace tessera::metrics {

struct RunFigures {
  double step_seconds = 0;
  std::int64_t memory_bytes = 0;  ///< of the largest rank; 0: not known
  Times parts;  ///< of a step, by what a rank does or waits for; names are those of the time table
};

/// Lines, each with its end: step, memory and waiting, predicted and measured, and the part whose
/// prediction was off most. `of`: what the prediction knew of the machine.
std::string predicted_and_measured(const RunFigures& predicted, const RunFigures& measured,
                                   const std::string& of);

}  // namespace tessera::metrics
