// SPDX-License-Identifier: Apache-2.0
// tessera plan --from RUN: what was predicted of a run beside what it measured, and the machine
// file that explains it.
#pragma once

#include "plan_request.hpp"

namespace tessera::app {

/// Prints it, and writes `request.out` if it has a name. Throws Error(usage) for a run that is too
/// short, or whose machine nobody names.
int plan_from(const PlanRequest& request);

}  // namespace tessera::app
