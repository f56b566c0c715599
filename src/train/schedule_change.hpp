// SPDX-License-Identifier: Apache-2.0
// What a change of training.steps does to the learning rates of a run that resumes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/plan/optimizer_plan.hpp"

namespace tessera::train {

/// A line for people where the job does not set lr_scheduler.total_steps and its schedule is longer
/// or shorter than that of a checkpoint, so that rates differ in steps to come; empty elsewhere.
/// `steps`: of the job; `toml`: the checkpoint's configuration; `done`: its step; `start`: the step
/// at which the schedule began.
std::string schedule_change(const plan::OptimizerPlan& plan, std::int64_t steps,
                            std::string_view toml, std::int64_t done, std::int64_t start);

}  // namespace tessera::train
