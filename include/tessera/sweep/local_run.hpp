// Points as processes of this machine, several at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/sweep/point_folder.hpp"

namespace tessera::sweep {

struct LocalJob {
  int number = 0;
  std::filesystem::path folder;      ///< of the point; what the command prints goes to its output.log
  std::vector<std::string> command;  ///< found on PATH
};

/// Told of each point that has ended, and of how many have ended so far.
using Ended = std::function<void(const LocalJob& job, int code, std::size_t ended)>;

/// Runs the jobs in their order, `at_once` at a time, and notes start and end of each in its folder.
///
/// A job that fails does not stop the others. The first SIGINT, SIGTERM or SIGHUP is passed on to the jobs that run as
/// SIGTERM, and no further job starts; a second one, a second or more later, is passed on too. Returns whether the
/// sweep was stopped so. Throws Error(environment) where no process can be made.
bool run_local(const std::vector<LocalJob>& jobs, int at_once, const Ended& ended);

}  // namespace tessera::sweep
