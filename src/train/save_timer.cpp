// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/save_timer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/plan/failures.hpp"

namespace tessera::train {
namespace {

constexpr double kUnknownCost = 1,
                 kFirstSave = 600;  // a save whose cost nobody knows yet comes no later
constexpr std::size_t kRecentSteps = 16;
constexpr const char* kOurEnd = "TESSERA_JOB_END";

}  // namespace

SaveTimer::SaveTimer(const Options& options, double now) : options_(options), last_save_(now) {
  const double left = std::max(0.0, options_.end.value_or(now) - now);
  slack_ = std::clamp(left / 50, 1.0, 30.0);
  unknown_save_ = std::clamp(left / 10, 1.0, 60.0);
}

void SaveTimer::step_took(double seconds) {
  steps_.push_back(seconds);
  if (steps_.size() > kRecentSteps) steps_.pop_front();
}

void SaveTimer::save_took(double waited, double durable) {
  cost_ = waited;
  durable_ = std::max(durable, durable_.value_or(0));
}

double SaveTimer::longest_step() const {
  return steps_.empty() ? 0 : *std::ranges::max_element(steps_);
}

bool SaveTimer::is_due(double now) const {
  if (options_.failures <= 0) return false;
  double interval = plan::young_interval(cost_.value_or(kUnknownCost), options_.failures);
  if (!cost_) interval = std::min(interval, kFirstSave);
  if (!cost_ && options_.end) interval = std::min(interval, (*options_.end - last_save_) / 2);
  interval = std::max(interval, durable_.value_or(0));
  return now + longest_step() - last_save_ >= interval;
}

bool SaveTimer::is_last(double now) const {
  if (!options_.end) return false;
  // A save that begins meanwhile is waited for, and then the last one may take half as long again.
  const double saves = durable_ ? 2.5 * *durable_ : unknown_save_;
  return now + 2 * longest_step() + validation_ + saves + slack_ > *options_.end;
}

std::optional<double> job_end_from_environment() {
  for (const char* name : {kOurEnd, "SLURM_JOB_END_TIME"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    double seconds = 0;
    const char* end = text + std::strlen(text);
    if (const auto [stop, error] = std::from_chars(text, end, seconds);
        error == std::errc() && stop == end && std::isfinite(seconds))
      return seconds;
    require(std::string_view(name) != kOurEnd, ExitCode::usage,
            "{}={} is not a time in seconds since 1970, such as $(date -d '+1 hour' +%s)", name,
            text);
    log::warning(
        "{} = '{}' is not a time in seconds since 1970; it is ignored, and no last checkpoint is "
        "planned",
        name, text);
  }
  return std::nullopt;
}

}  // namespace tessera::train
