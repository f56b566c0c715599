// SPDX-License-Identifier: Apache-2.0
// What `tessera plan` says of other ways to run a job.
#pragma once

#include <nlohmann/json.hpp>

#include "tessera/planner/decision.hpp"

namespace tessera::app {

/// A search, and what it is compared with.
struct Advice {
  planner::Price own;
  planner::SearchResult found;
  std::vector<planner::KnobEffect> knobs;  ///< of the best variant
  std::optional<planner::Remedy> remedy;   ///< of a job that does not fit
  std::optional<planner::Decision> decision;
  const char* unit = "GPU";  ///< what speeds are of
};

/// What is asked for beside a remedy for a job that does not fit.
struct Wanted {
  bool search = false, explain = false;
};
Advice advice_of(const config::Resolved& job, const planner::VariantSpace& space,
                 const planner::Price& own, const planner::Machine& machine,
                 const planner::Stack& stack, const Wanted& wanted);

/// What there is of it.
void print(const Advice& advice);
nlohmann::json as_json(const Advice& advice);
/// The questions of its decision.
nlohmann::json explained(const Advice& advice);

}  // namespace tessera::app
