// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ranks.hpp"

namespace tessera::app {

/// tessera train --rehearse: checks `job` with `find` as its start on `ranks` ranks would, files
/// too, and prints what its ranks would send and take. Returns the exit code; throws Error for a
/// job that would not start.
int rehearse_training(int ranks, const Args& job, const FindOnRanks& find);

}  // namespace tessera::app
