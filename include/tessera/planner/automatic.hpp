// SPDX-License-Identifier: Apache-2.0
// The values of keys that a job leaves to the planner.
#pragma once

#include <cstdint>

#include "tessera/config/resolve.hpp"
#include "tessera/planner/machine.hpp"
#include "tessera/planner/stack.hpp"

namespace tessera::planner {

/// Gives every key of config::left_to_planner() its value in the fastest variant that fits `ranks`
/// ranks of the machine; the other keys of the job stay. Notes what it chose, and why, in
/// `job.resolved.choices`. Does nothing for a job without such keys, or with problems; complains
/// in `job.problems` where nothing can be chosen. `vocabulary`: of the training data, 0 = unknown.
void choose_values(config::Reading& job, int ranks, std::int64_t vocabulary, const Machine& machine,
                   const Stack& stack);

/// The same for Tessera on the machine that the job names.
void choose_values(config::Reading& job, int ranks, std::int64_t vocabulary);

}  // namespace tessera::planner
