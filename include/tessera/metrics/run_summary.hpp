// SPDX-License-Identifier: Apache-2.0
// What a run says when it has reached its last step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "tessera/metrics/step_record.hpp"

namespace tessera::metrics {

/// Seconds of one rank since its first step began. The rest is neither.
struct TimeSpent {
  double all = 0;
  double data = 0;           ///< waiting for samples
  double compute = 0;        ///< forward, backward, optimizer
  double communication = 0;  ///< waiting for other ranks, outside of what computation hides
  double checkpoints = 0;    ///< for which saving held training
  double validation = 0;
};

/// Fed once a step with what metrics.jsonl has of it.
class RunSummary {
 public:
  /// `last_step`: training.steps; `first_step`: the first that this attempt runs; after `last_step`
  /// if nothing is left to do.
  RunSummary(std::int64_t first_step, std::int64_t last_step)
      : first_step_(first_step), last_step_(last_step) {}

  /// `exposed_seconds`: for which this rank waited for others in the step.
  void step(const StepRecord& record, double exposed_seconds);
  TimeSpent& time() { return time_; }

  /// Lines, each with its end: "training is complete (30 of 30 steps)" or that the run has more
  /// steps, loss, speed, where the time went, files of the run's folder that are there, and
  /// commands to try next. `checkpoints`: the run saves them.
  std::string text(const std::filesystem::path& folder, bool checkpoints) const;

 private:
  std::int64_t steps_done() const;  ///< of the run, when this attempt ends
  std::string heading() const;
  std::string figures() const;
  std::string shares() const;
  std::string next_commands(const std::string& folder, bool checkpoints) const;

  std::int64_t first_step_, last_step_;
  TimeSpent time_;
  double first_loss_ = std::numeric_limits<double>::quiet_NaN(), loss_ = first_loss_;
  double step_seconds_ = 0;
  std::int64_t steps_ = 0, tokens_ = 0, memory_bytes_ = 0, skipped_ = 0;
};

}  // namespace tessera::metrics
