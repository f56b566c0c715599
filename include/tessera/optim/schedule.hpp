// SPDX-License-Identifier: Apache-2.0
// The learning-rate factor as a pure function of the step: linear warm-up, a plateau, decay
// (TorchTitan's schedule).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::optim {

enum class Decay { linear, sqrt, cosine };

/// "linear", "sqrt", "cosine". Throws Error(usage) for another name.
Decay decay_from_name(std::string_view name);

struct ScheduleOptions {
  std::int64_t warmup_steps = 200;
  std::int64_t total_steps = 1;
  /// Part of total_steps that decays, at the end; none = everything after the warm-up.
  std::optional<double> decay_ratio = {};
  Decay decay = Decay::linear;
  double min_lr_factor = 0.0;
};

class Schedule {
 public:
  /// A warm-up longer than the run is cut to it, and then a decay that does not fit beside the
  /// warm-up: adjustment() says so. Throws Error(usage) for negative counts, a ratio or factor
  /// outside [0, 1].
  explicit Schedule(const ScheduleOptions& options);

  /// Factor of the base learning rate in step `step` (from 0). Past the end the last value holds.
  double factor(std::int64_t step) const;

  std::int64_t warmup_steps() const { return warmup_steps_; }
  /// One more than the plateau: the last step does not reach 0.
  std::int64_t stable_steps() const { return stable_steps_; }
  std::int64_t decay_steps() const { return decay_steps_; }
  /// Empty, or what was cut, in words fit for a warning.
  std::string_view adjustment() const { return adjustment_; }

 private:
  double decayed(double progress) const;

  std::int64_t total_steps_;
  std::int64_t warmup_steps_;
  std::int64_t decay_steps_;
  std::int64_t stable_steps_;
  Decay decay_;
  double min_lr_factor_;
  std::string_view adjustment_;
};

}  // namespace tessera::optim
