// SPDX-License-Identifier: Apache-2.0
// The tables of a comparison, for terminal and page alike.
#pragma once

#include <string>
#include <vector>

#include "tessera/report/page.hpp"
#include "tessera/report/run.hpp"

namespace tessera::report {

Table results_table(const std::vector<TrainingRun>& runs);
Table settings_table(const std::vector<TrainingRun>& runs);
Table divergence_table(const std::vector<TrainingRun>& runs, double tolerance);
/// A line for each run whose configuration cannot be read.
std::vector<std::string> unread_settings(const std::vector<TrainingRun>& runs);

}  // namespace tessera::report
