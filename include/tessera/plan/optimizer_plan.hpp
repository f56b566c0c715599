// SPDX-License-Identifier: Apache-2.0
// What a step does with its gradients, and with those that are not finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/dtype.hpp"
#include "tessera/plan/injected_fault.hpp"

namespace tessera::plan {

enum class Decay : std::uint8_t { linear, sqrt, cosine };

struct LearningRatePlan {
  std::int64_t warmup_steps = 200;
  std::int64_t total_steps = 1;
  /// Part of total_steps that decays, at the end; none = everything after the warm-up.
  std::optional<double> decay_ratio = {};
  Decay decay = Decay::linear;
  double min_lr_factor = 0.0;
  bool own_length = false;  ///< total_steps is lr_scheduler.total_steps, not training.steps
};

/// The schedule of the run whose record (Resolved::to_toml()) this is, with the rest of `now`;
/// nothing where the record lacks its length or warm-up.
std::optional<LearningRatePlan> recorded_learning_rate(std::string_view toml,
                                                       const LearningRatePlan& now);

/// AdamW or Adam.
struct OptimizerPlan {
  double lr = 8e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  bool coupled_decay = false;  ///< Adam: weight decay is added to the gradient
  double max_norm = 1;         ///< of the gradient; inf: never clipped
  DType moments = DType::f32;
  /// Seed of the random bits by which weights and moments in bf16 are rounded; none: to nearest.
  std::optional<std::uint64_t> rounding_seed = {};
  LearningRatePlan schedule = {};
};

enum class OnNonfinite : std::uint8_t { skip, stop, rewind };
enum class OnSpike : std::uint8_t { warn, rewind };

struct FaultPlan {
  OnNonfinite on_nonfinite = OnNonfinite::skip;
  OnSpike on_spike = OnSpike::warn;
  double spike_zscore = 0;              ///< standard deviations; 0: spikes are not looked for
  std::int64_t max_skipped_steps = 10;  ///< faults in a row before the run stops
  std::int64_t check_replicas = 0;      ///< replicas are compared every this many steps; 0: never
  std::vector<InjectedFault> injected;
  /// Flags that take back what of the job contradicts a replay of its batch, each after a blank;
  /// and those for a replay that starts from one of the run's own checkpoints.
  std::string replay_flags, replay_start_flags;
};

}  // namespace tessera::plan
