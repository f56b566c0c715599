// SPDX-License-Identifier: Apache-2.0
// A price in the words of a run's reports.
#pragma once

#include <string>

#include "tessera/metrics/prediction.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::planner {

/// The parts have the names of a run's table of times. Where ranks take turns on a core, others
/// have it while a rank waits in its calls, and in its passes when these are longer than a turn.
metrics::RunFigures figures_of(const Price& price, const Machine& machine);

/// "2 cores of AMD EPYC", "h100-700w".
std::string words_of(const Machine& machine);

}  // namespace tessera::planner
