// SPDX-License-Identifier: Apache-2.0
#include "schedule_change.hpp"

#include <fmt/format.h>

#include <optional>

#include "tessera/config/option_table.hpp"
#include "tessera/config/recorded.hpp"
#include "tessera/train/setup.hpp"

namespace tessera::train {
namespace {

/// The job with the length and the warm-up of the recorded schedule; empty where the record lacks
/// them.
std::optional<config::JobConfig> with_recorded_schedule(config::JobConfig job,
                                                        std::string_view toml) {
  for (const char* key :
       {"training.steps", "lr_scheduler.warmup_steps", "lr_scheduler.total_steps"}) {
    const config::Option& option = *config::find_option(key);
    const auto text = config::recorded(toml, key);
    if (assign(option, job, text ? value_from_text(option, *text) : config::Value()))
      return std::nullopt;
  }
  return job;
}

}  // namespace

std::string schedule_change(const config::JobConfig& job, std::string_view toml, std::int64_t done,
                            std::int64_t start) {
  const auto before = with_recorded_schedule(job, toml);
  if (!before || job.lr_scheduler.total_steps) return "";
  const optim::ScheduleOptions now = lr_schedule_of(job), then = lr_schedule_of(*before);
  if (now.total_steps == then.total_steps) return "";
  const optim::Schedule schedule(now), old_schedule(then);
  // On a plateau of both, the rates differ only later: at the latest where one of them ends.
  for (const std::int64_t step : {done, start + then.total_steps - 1, job.training.steps - 1}) {
    if (step < done || step >= job.training.steps) continue;
    const double rate = job.optimizer.lr * schedule.factor(step - start);
    const double old_rate = job.optimizer.lr * old_schedule.factor(step - start);
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
