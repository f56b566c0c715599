// SPDX-License-Identifier: Apache-2.0
// What a run says when it has reached its last step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "tessera/metrics/step_record.hpp"

namespace tessera::metrics {

/// What a run leaves behind.
enum class Kept : std::uint8_t {
  nothing,
  only_loaded,  ///< nothing, because of checkpoint.load_only
  model,        ///< the last checkpoint has only the model
  state,        ///< all that is needed to train on
};

/// Fed once a step with what metrics.jsonl has of it.
class RunSummary {
 public:
  /// `last_step`: training.steps; `first_step`: the first that this attempt runs; after `last_step`
  /// if nothing is left to do.
  RunSummary(std::int64_t first_step, std::int64_t last_step)
      : first_step_(first_step), last_step_(last_step) {}

  void step(const StepRecord& record);

  /// Lines, each with its end: "training is complete (30 of 30 steps)" or that the run has more
  /// steps, loss, speed, `times` if a step was done, files of the run's folder that are there, and
  /// commands to try next, which fit what is `kept`. `times`: whole lines that say where the time
  /// went.
  std::string text(const std::filesystem::path& folder, Kept kept,
                   const std::string& times = "") const;

 private:
  std::int64_t steps_done() const;  ///< of the run, when this attempt ends
  std::string heading(Kept kept) const;
  std::string figures() const;
  std::string next_commands(const std::string& folder, Kept kept) const;

  std::int64_t first_step_, last_step_;
  double first_loss_ = std::numeric_limits<double>::quiet_NaN(), loss_ = first_loss_;
  double step_seconds_ = 0;
  double mfu_seconds_ = 0, causal_seconds_ = 0;  ///< sums of utilisation x seconds; NaN: unknown
  std::int64_t steps_ = 0, tokens_ = 0, memory_bytes_ = 0, skipped_ = 0;
};

}  // namespace tessera::metrics
