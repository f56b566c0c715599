// SPDX-License-Identifier: Apache-2.0
// What `tessera plan` says of a whole run: time, energy, cost, and what failures take.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tessera/planner/goodput.hpp"

namespace tessera::app {

/// What is asked of a run; empty: the job's own.
struct RunRequest {
  std::optional<double> tokens;
  std::optional<double> dollars;     ///< of a GPU for an hour
  std::optional<double> mtbf_hours;  ///< between failures of one GPU

  bool wanted() const { return tokens || dollars || mtbf_hours; }
};

/// "15e12", "15T", "300B" of a flag. Throws Error(usage) for what is no number above 0.
double amount_in(const std::string& flag, const std::string& text);

struct RunForecast {
  double tokens = 0;
  planner::Saves saves;
  bool own_interval = false;  ///< the job names it; else it follows from failures
  std::int64_t steps_between_saves = 0, best_steps_between_saves = 0;
  double between_failures = 0;  ///< seconds
  double goodput = 0, best_goodput = 0;
  planner::RunCost cost;
  bool finishes = true;           ///< before failures have taken nearly all of its time
  std::optional<double> dollars;  ///< of the run
  const char* unit = "GPU";       ///< what hours are of
};
RunForecast forecast_of(const RunRequest& request, const plan::JobPlan& plan,
                        const planner::Workload& work, const planner::Price& price,
                        const planner::Machine& machine, const planner::Stack& stack);

std::string run_text(const RunForecast& run);
nlohmann::json run_json(const RunForecast& run);

}  // namespace tessera::app
