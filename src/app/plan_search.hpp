// SPDX-License-Identifier: Apache-2.0
// What `tessera plan` says of other ways to run a job.
#pragma once

#include <nlohmann/json.hpp>

#include "tessera/planner/search.hpp"

namespace tessera::app {

/// A search, and what it is compared with.
struct Advice {
  planner::Price own;
  planner::SearchResult found;
  std::vector<planner::KnobEffect> knobs;  ///< of the best variant
  std::optional<planner::Remedy> remedy;   ///< of a job that does not fit
};

/// Searches if `all`; finds a remedy if the job does not fit.
Advice advice_of(const config::Resolved& job, const planner::VariantSpace& space,
                 const planner::Price& own, const planner::Machine& machine,
                 const planner::Stack& stack, bool all);

/// `all`: the best variants and their knobs too.
void print(const Advice& advice, bool all);
nlohmann::json as_json(const Advice& advice);

}  // namespace tessera::app
