// SPDX-License-Identifier: Apache-2.0
// At the end of a run whose machine is known: what the planner predicts of it beside what was
// measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/metrics/meter.hpp"
#include "tessera/metrics/prediction.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/planner/run_advice.hpp"

namespace tessera::train {

/// Of a step of median length: the parts of the run, in the shares that they have of its steps.
metrics::RunFigures measured_figures(const metrics::StepMeter& meter,
                                     const std::vector<metrics::Times>& of_ranks,
                                     std::int64_t memory_bytes);

/// Nothing where the planner cannot know.
std::optional<metrics::Prediction> prediction_of(const plan::JobPlan& plan,
                                                 const planner::RunAdvice& advice,
                                                 const metrics::RunFigures& measured);

/// Lines, each with its end: its figures, and the changes that make a step faster.
std::string lines_of(const metrics::Prediction& prediction, const planner::RunAdvice& advice);

}  // namespace tessera::train
