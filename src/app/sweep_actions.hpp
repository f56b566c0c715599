// SPDX-License-Identifier: Apache-2.0
// What the subcommands of `tessera sweep` do.
#pragma once

#include <optional>
#include <string>

#include "command.hpp"

namespace tessera::app {

struct SweepRequest {
  std::string file;  ///< a sweep file; for what exists already also a sweep's folder
  /// points at the same time; the file's own number where it is not given
  std::optional<int> at_once;
  std::string on;                 ///< "local" or "slurm"; empty: as the sweep was started before
  bool lines = false;             ///< expand: flags, one point a line
  bool dry_run = false;           ///< print what would be done
  bool only_failed = false;       ///< start failed points only
  bool no_files = false;          ///< look at no file that a point names
  std::string by;                 ///< collect: a column of metrics.jsonl
  std::vector<std::string> heat;  ///< collect: the two keys of the heat map
};

int expand_sweep(const SweepRequest& request);
/// Starts every point that is not done. Here: returns 0 when all of them end well, 1 when some
/// fail, 75 when it was stopped. Under Slurm: 0 when the array is submitted.
int start_sweep(const SweepRequest& request);
/// Returns 0 when every point is done, else 1.
int show_sweep(const SweepRequest& request);
/// Writes the results next to the points.
int collect_sweep(const SweepRequest& request);

}  // namespace tessera::app
