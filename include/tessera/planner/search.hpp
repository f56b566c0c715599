// SPDX-License-Identifier: Apache-2.0
// Other ways to run a job on the same GPUs: which are fastest, and which change makes it fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/config/resolve.hpp"
#include "tessera/planner/price.hpp"

namespace tessera::planner {

/// What the search varies. The batch of a step stays as it is.
struct Variant {
  int tp = 1, pp = 1;
  std::string schedule = "1F1B", recompute = "selective";
  std::int64_t microbatch = 1;  ///< sequences
  bool async_tp = false;
};

struct Option {
  std::vector<std::string> changes;  ///< "key = value", as a job file has them
  config::Resolved job;              ///< with these changes
  Price price;
};

struct SearchResult {
  int legal = 0, fitting = 0;      ///< variants
  std::vector<Option> best;        ///< at most five that fit, fastest first
  std::optional<Option> smallest;  ///< fewest changes that fit, then the fastest
};

/// The job with a variant's values, for `ranks` GPUs that share `sequences` a step. Nothing where
/// these do not divide. Changed keys have the origin "tessera plan".
std::optional<Option> changed(const config::Resolved& job, const Variant& variant, int ranks,
                              std::int64_t sequences);

/// Tries tensor and pipeline degrees, schedules, recomputation, microbatches and asynchronous
/// tensor parallelism. Other keys stay; data-parallel ranks share what is left. `job` must have a
/// plan for `ranks` GPUs, the workload `own`. Only variants that fit are timed.
SearchResult search(const config::Resolved& job, const Workload& own, const Machine& machine,
                    const Stack& stack);

}  // namespace tessera::planner
