// SPDX-License-Identifier: Apache-2.0
// The words of `tessera plan`.
#pragma once

#include <string>

#include "command.hpp"
#include "plan_run.hpp"

namespace tessera::app {

struct PlanRequest {
  int gpus = 0;         ///< 0: as few as the mesh needs
  std::string machine;  ///< empty: that of the job
  std::string stack;    ///< empty: Tessera on GPUs or on a host
  bool json = false, search = false, explain = false, traffic = false, rehearse = false;
  std::string write;    ///< empty: nothing is written
  std::string picture;  ///< its kind; empty: none is drawn
  std::string out;      ///< the file of the picture, or of a refined machine
  std::string from;     ///< the folder of a run that is compared with its prediction
  RunRequest run;
  Args job;  ///< what is not of the command
};

std::string plan_usage();

/// Throws Error(usage) for a flag without its value, and for one that has no effect beside others.
PlanRequest plan_request_of(const Args& args);

/// The words of a rehearsal.
Args rehearsal_of(const PlanRequest& request);

}  // namespace tessera::app
