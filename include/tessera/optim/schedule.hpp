// SPDX-License-Identifier: Apache-2.0
// The learning-rate factor as a pure function of the step: linear warm-up, a plateau, decay
// (TorchTitan's schedule).
#pragma once

#include <cstdint>

#include "tessera/plan/optimizer_plan.hpp"

namespace tessera::optim {

class Schedule {
 public:
  /// A warm-up longer than the run is cut to it, and then a decay that does not fit after the
  /// warm-up. Contract: counts are not negative, ratio and factor are in [0, 1].
  explicit Schedule(const plan::LearningRatePlan& plan);

  /// Factor of the base learning rate in step `step` (from 0). Past the end the last value holds.
  double factor(std::int64_t step) const;

 private:
  double decayed(double progress) const;

  plan::LearningRatePlan plan_;
  std::int64_t warmup_steps_;
  std::int64_t decay_steps_;
  std::int64_t stable_steps_;  ///< one more than the plateau: the last step does not reach 0
};

}  // namespace tessera::optim
