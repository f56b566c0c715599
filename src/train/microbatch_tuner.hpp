// SPDX-License-Identifier: Apache-2.0
// Runs the trial of microbatch sizes in the first steps of a job.
#pragma once

#include <optional>
#include <string>

#include "tessera/train/microbatch_trial.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

class MicrobatchTuner {
 public:
  /// For a trainer whose job says "auto". Throws Error(usage) when no divisor of the batch goes
  /// with mesh and schedule.
  MicrobatchTuner(Trainer& trainer, const config::JobConfig& job, int sharers);

  /// Sets the size of the step that follows.
  void before_step() { trainer_.set_microbatch_rows(trial_.rows()); }
  /// Collective. Text for people once the choice is made, else empty.
  std::string after_step(double seconds);
  bool done() const { return trial_.done(); }

 private:
  bool next_fits() const;
  /// (stage, microbatch) pairs that this rank keeps at once, times their sequences.
  double kept_rows(std::int64_t rows) const;

  Trainer& trainer_;
  const config::JobConfig& job_;
  int sharers_;
  MicrobatchTrial trial_;
  std::int64_t bytes_before_;  ///< peak, before the first step
};

}  // namespace tessera::train
