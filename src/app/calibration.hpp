// SPDX-License-Identifier: Apache-2.0
// What `tessera plan calibrate` measures of the node that it runs on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/comm/world.hpp"
#include "tessera/planner/host.hpp"

namespace tessera::app {

struct CalibrationOptions {
  double seconds = 30;                 ///< about how long it may take
  std::filesystem::path folder = ".";  ///< where checkpoints are written
};

struct Calibration {
  planner::Host host;
  std::vector<std::string> assumed;  ///< what was not measured, and why
};

/// Collective, on the ranks of one node, at most one a core. Ranks compute at once, each with one
/// thread; then rank 0 with all cores.
Calibration calibrate(comm::World& world, const CalibrationOptions& options);

/// Products, attention and what memory bounds, of one thread of each rank, and of all threads of
/// rank 0. Collective.
void measure_cores(comm::World& world, double seconds, planner::Host& host);

/// Collectives between the ranks, of which there are several.
void measure_links(comm::World& world, double seconds, planner::Host& host);

}  // namespace tessera::app
