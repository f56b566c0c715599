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

}  // namespace

Schedule::Schedule(const plan::LearningRatePlan& p)
    : plan_(p),
      warmup_steps_(std::min(p.warmup_steps, p.total_steps)),
      decay_steps_(p.total_steps - warmup_steps_),
      stable_steps_(1) {
  TESSERA_EXPECT(p.warmup_steps >= 0 && p.total_steps >= 0, "warm-up {} of {} steps",
                 p.warmup_steps, p.total_steps);
  const double ratio = p.decay_ratio.value_or(0), least = p.min_lr_factor;
  TESSERA_EXPECT(ratio >= 0 && ratio <= 1 && least >= 0 && least <= 1,
                 "decay over {} of the steps, to {}", ratio, least);
  if (!p.decay_ratio) return;
  const std::int64_t wanted = round_half_even(static_cast<double>(p.total_steps) * *p.decay_ratio);
  decay_steps_ = std::min(decay_steps_, wanted);
  stable_steps_ = p.total_steps + 1 - warmup_steps_ - decay_steps_;
}

double Schedule::factor(std::int64_t step) const {
  TESSERA_EXPECT(step >= 0, "step {}", step);
  const std::int64_t stable_end = warmup_steps_ + stable_steps_;
  if (step < warmup_steps_)
    return static_cast<double>(step + 1) / static_cast<double>(warmup_steps_);
  const std::int64_t last = std::min(step, plan_.total_steps - 1);
  if (last < stable_end) return 1.0;
  return decayed(static_cast<double>(last + 1 - stable_end) / static_cast<double>(decay_steps_));
}

double Schedule::decayed(double progress) const {
  const auto shape = [&] {
    switch (plan_.decay) {
      case plan::Decay::sqrt:
        return 1.0 - std::sqrt(progress);
      case plan::Decay::cosine:
        return 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
      default:
        return 1.0 - progress;
    }
  };
  return plan_.min_lr_factor + (1.0 - plan_.min_lr_factor) * shape();
}

}  // namespace tessera::optim
