// SPDX-License-Identifier: Apache-2.0
// Data that is not cut into windows: does it hold what a job's plan asks for?
#pragma once

#include "tessera/config/resolve.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::inputs {

/// Complains of data that has too few rows for a batch, marks no documents where they are masked,
/// or ends before the last step. The last is not said of a run that continues from a checkpoint,
/// which alone knows how much it has trained on.
void check_samples(config::Reading& job, const plan::JobPlan& plan);

}  // namespace tessera::inputs
