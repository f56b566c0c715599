// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command.hpp"

namespace tessera::app {

/// Steps of the job `job`, a file and flags, and what they take. All ranks; returns the exit code.
int bench_step(const Args& job, int steps, bool json);

}  // namespace tessera::app
