// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/base/error.hpp"

namespace tessera::optim {
namespace {

/// Half to even, as Python's round.
std::int64_t round_half_even(double value) {
  const double floor = std::floor(value), rest = value - floor;
  const auto below = static_cast<std::int64_t>(floor);
  return rest > 0.5 || (rest == 0.5 && below % 2 != 0) ? below + 1 : below;
}

void check(const ScheduleOptions& o) {
  require(o.warmup_steps >= 0, ExitCode::usage,
          "lr_scheduler.warmup_steps is {}; it must not be negative", o.warmup_steps);
  require(o.total_steps >= 0, ExitCode::usage,
          "lr_scheduler.total_steps is {}; it must not be negative", o.total_steps);
  require(!o.decay_ratio || (*o.decay_ratio >= 0.0 && *o.decay_ratio <= 1.0), ExitCode::usage,
          "lr_scheduler.decay_ratio is {}; it must lie in [0, 1]", o.decay_ratio.value_or(0.0));
  require(o.min_lr_factor >= 0.0 && o.min_lr_factor <= 1.0, ExitCode::usage,
          "lr_scheduler.min_lr_factor is {}; it must lie in [0, 1]", o.min_lr_factor);
}

}  // namespace

Decay decay_from_name(std::string_view name) {
  if (name == "linear") return Decay::linear;
  if (name == "sqrt") return Decay::sqrt;
  if (name == "cosine") return Decay::cosine;
  fail(ExitCode::usage, "lr_scheduler.decay_type is \"{}\"; use linear, sqrt or cosine", name);
}

Schedule::Schedule(const ScheduleOptions& o)
    : total_steps_(o.total_steps),
      warmup_steps_(std::min(o.warmup_steps, o.total_steps)),
      decay_steps_(o.total_steps - warmup_steps_),
      stable_steps_(1),
      decay_(o.decay),
      min_lr_factor_(o.min_lr_factor) {
  check(o);
  if (o.warmup_steps > o.total_steps)
    adjustment_ = "the warm-up is longer than the run; it is shortened";
  if (!o.decay_ratio) return;
  const std::int64_t wanted = round_half_even(static_cast<double>(o.total_steps) * *o.decay_ratio);
  if (wanted > decay_steps_)
    adjustment_ = "warm-up and decay are longer than the run; the decay is shortened";
  decay_steps_ = std::min(decay_steps_, wanted);
  stable_steps_ = o.total_steps + 1 - warmup_steps_ - decay_steps_;
}

double Schedule::factor(std::int64_t step) const {
  TESSERA_EXPECT(step >= 0, "step {}", step);
  const std::int64_t stable_end = warmup_steps_ + stable_steps_;
  if (step < warmup_steps_)
    return static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  const std::int64_t last = std::min(step, total_steps_ - 1);
  if (last < stable_end) return 1.0;
  return decayed(static_cast<double>(last + 1 - stable_end) / static_cast<double>(decay_steps_));
}

double Schedule::decayed(double progress) const {
  const auto shape = [&] {
    switch (decay_) {
      case Decay::sqrt:
        return 1.0 - std::sqrt(progress);
      case Decay::cosine:
        return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
      default:
        return 1.0 - progress;
    }
  };
  return min_lr_factor_ + (1.0 - min_lr_factor_) * shape();
}

}  // namespace tessera::optim
