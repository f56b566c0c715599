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
  /// `plans`: at least one, in rising order of their sizes. `sharers`: ranks that share this one's
  /// memory. What is given must outlive this.
  MicrobatchTuner(Trainer& trainer, const std::vector<plan::MicrobatchPlan>& plans, int sharers);

  /// Sets the size of the step that follows.
  void before_step();
  /// Collective. Text for people once the choice is made, else empty.
  std::string after_step(double seconds);
  bool done() const { return trial_.done(); }

 private:
  const plan::MicrobatchPlan& of(std::int64_t rows) const;
  bool next_fits() const;
  /// (stage, microbatch) pairs that this rank keeps at once, times their sequences.
  double kept_rows(std::int64_t rows) const;

  Trainer& trainer_;
  const std::vector<plan::MicrobatchPlan>& plans_;
  int sharers_;
  MicrobatchTrial trial_;
  std::int64_t bytes_before_;  ///< peak, before the first step
};

}  // namespace tessera::train
