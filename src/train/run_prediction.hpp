// SPDX-License-Identifier: Apache-2.0
// At the end of a run on a host: what the planner predicts of it beside what was measured.
#pragma once

#include <string>
#include <vector>

#include "tessera/metrics/meter.hpp"
#include "tessera/metrics/prediction.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::train {

/// Of a step of median length: the parts of the run, in the shares that they have of its steps.
metrics::RunFigures measured_figures(const metrics::StepMeter& meter,
                                     const std::vector<metrics::Times>& of_ranks,
                                     std::int64_t memory_bytes);

/// Lines, each with its end; none where the planner cannot know: it takes what is usual
/// for the processor. `ranks_on_node`: of the node of this rank.
std::string prediction_lines(const plan::JobPlan& plan, int ranks_on_node,
                             const metrics::RunFigures& measured);

}  // namespace tessera::train
