// SPDX-License-Identifier: Apache-2.0
// When a run saves, beyond the steps that its job names: from what its steps and saves have taken
// so far.
#pragma once

#include <deque>
#include <optional>

namespace tessera::train {

/// All times are seconds, those named `now` and `end` since the epoch.
class SaveTimer {
 public:
  struct Options {
    /// mean time between failures of the whole job; 0: it names the steps to save itself
    double failures = 0;
    std::optional<double> end{};  ///< of the allocation, if it is known
  };

  SaveTimer(const Options& options, double now);

  void step_took(double seconds);
  /// A save began that takes what is true of the run at `now`.
  void save_began(double now) { last_save_ = now; }
  void validation_took(double seconds) {
    validation_ = seconds > validation_ ? seconds : validation_;
  }
  /// `waited`: how long training stood still for it; `durable`: until it was committed.
  void save_took(double waited, double durable);

  /// Should a save follow the step that begins now? By plan::young_interval(), and never sooner
  /// than the last one took. Until a cost is known it is taken for a second, and the first save
  /// comes after ten minutes, or half of what is left of the allocation, at the latest.
  bool is_due(double now) const;
  /// Would a step after the one that begins now, and the last save, end too late?
  bool is_last(double now) const;

 private:
  double longest_step() const;

  Options options_;
  double last_save_;
  double slack_ = 0,
         unknown_save_ = 0;  ///< kept free at the end; what a save takes as long as none was seen
  std::optional<double> cost_, durable_;
  double validation_ = 0;
  std::deque<double> steps_;
};

/// The end of the allocation as TESSERA_JOB_END or Slurm's SLURM_JOB_END_TIME gives it. Throws
/// Error(usage) where the first is not a time. Another value of Slurm's is ignored with a warning.
std::optional<double> job_end_from_environment();

}  // namespace tessera::train
