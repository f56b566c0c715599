// SPDX-License-Identifier: Apache-2.0
#include "schedule_change.hpp"

#include <fmt/format.h>

#include "tessera/optim/schedule.hpp"

namespace tessera::train {

std::string schedule_change(const plan::OptimizerPlan& plan, std::int64_t steps,
                            std::string_view toml, std::int64_t done, std::int64_t start) {
  const plan::LearningRatePlan& now = plan.schedule;
  const auto before = plan::recorded_learning_rate(toml, now);
  if (!before || now.own_length) return "";
  const plan::LearningRatePlan& then = *before;
  if (now.total_steps == then.total_steps) return "";
  const optim::Schedule schedule(now), old_schedule(then);
  // On a plateau of both, the rates differ only later: at the latest where one of them ends.
  for (const std::int64_t step : {done, start + then.total_steps - 1, steps - 1}) {
    if (step < done || step >= steps) continue;
    const double rate = plan.lr * schedule.factor(step - start);
    const double old_rate = plan.lr * old_schedule.factor(step - start);
    if (rate != old_rate)
      return fmt::format(
          "the learning-rate schedule has {} steps (training.steps), and had {} in the checkpoint: "
          "the rate of step {} "
          "is {:.4g} instead of {:.4g}; set lr_scheduler.total_steps = {} to keep the old schedule",
          now.total_steps, then.total_steps, step + 1, rate, old_rate, then.total_steps);
  }
  return "";
}

}  // namespace tessera::train
