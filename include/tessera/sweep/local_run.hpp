// SPDX-License-Identifier: Apache-2.0
// Points as processes of this machine, several at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/sweep/point_folder.hpp"

namespace tessera::sweep {

struct LocalJob {
  int number = 0;
  std::filesystem::path folder;  ///< of the point; what the command prints goes to its output.log
  std::vector<std::string> command;  ///< found on PATH
  bool saves = true;                 ///< checkpoints, so that it can go on after its limit
};

/// Called at each start, and at the end of each job, with how many have so far. Jobs that are
/// skipped count as ended.
struct LocalObserver {
  std::function<void(const LocalJob& job)> started;
  std::function<void(const LocalJob& job, std::size_t ended)> ended;
  /// `state`: running or done; empty: not known
  std::function<void(const LocalJob& job, State state)> skipped = {};
};

struct LocalLimits {
  int at_once = 1;
  std::optional<std::int64_t> seconds;  ///< of one attempt
};

/// Seconds before a limit at which ranks are told to save.
std::int64_t warning_seconds(std::int64_t limit_seconds);

/// Runs the jobs in their order, `at_once` at a time, and notes start and end of each in its
/// folder.
///
/// Another sweep may work in the same folder: a job whose point is running or done when its turn
/// comes is skipped. A job that fails does not stop the others. Shortly before its limit a job that
/// saves gets SIGTERM, and at its limit another one; if it then ends with 75 after further steps,
/// it runs again when the others have. Another job gets them at its limit and ten seconds later.
/// The first SIGINT, SIGTERM or SIGHUP is passed on to the jobs that run as SIGTERM, and no further
/// job starts; a second one, a second or more later, is passed on too. Returns whether the sweep
/// was stopped so. Throws Error(environment) where no process can be made.
bool run_local(const std::vector<LocalJob>& jobs, const LocalLimits& limits,
               const LocalObserver& observer);

}  // namespace tessera::sweep
