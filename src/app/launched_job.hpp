// SPDX-License-Identifier: Apache-2.0
// A job under mpirun: its life, its signals, and that nothing of it is left over.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tessera::app {

struct JobPlan {
  std::vector<std::string> command;  ///< mpirun and its arguments; found on PATH
  std::vector<std::pair<std::string, std::string>> environment;  ///< to add
  bool local = true;  ///< every rank runs on this machine
};

/// Runs the job to its end in a session of its own and returns its exit code (128 + signal where a
/// signal ended it; then one line says which rank, in which step, and how to resume). The first
/// SIGINT, SIGTERM or SIGHUP reaches the ranks as SIGUSR1; a second one, a second or more later,
/// ends the job: SIGTERM to mpirun, and SIGKILL to all that is left of the session a few seconds
/// later. The code is then 128 + signal, unless all ranks had decided on theirs: 75 once a
/// checkpoint is complete. SIGUSR1 and SIGUSR2 are passed on as they are. Signals that were ignored
/// when it was called still are, SIGCHLD excepted. When this returns, no process of the session is
/// left, a dead one neither. Throws Error(environment) when mpirun cannot be started.
int run_job(const JobPlan& plan);

}  // namespace tessera::app
