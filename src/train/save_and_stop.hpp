// SPDX-License-Identifier: Apache-2.0
// When a run saves, or ends before its last step: its keys, signals, the times of saves, the end of
// the allocation.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/train/save_timer.hpp"
#include "tessera/train/step_votes.hpp"

namespace tessera::train {

class SaveAndStop {
 public:
  /// Rank 0 alone looks at the clock, and answers signals; the others learn of it by its votes.
  SaveAndStop(const plan::JobPlan& plan, int rank, int ranks);

  /// Whether the job writes checkpoints.
  bool saves() const { return plan_.save.enabled; }
  /// This rank's votes now.
  StepVotes votes() const;
  /// After step `step`; `votes` are those of all ranks.
  bool must_save(std::int64_t step, const StepVotes& votes) const;
  /// What the process ends with where `votes` end the run.
  ExitCode code_of_end(const StepVotes& votes) const;

  /// Of a job that saves, on rank 0.
  std::optional<SaveTimer>& timer() { return timer_; }
  /// Seconds since the epoch.
  static double now();

 private:
  const plan::JobPlan& plan_;
  std::optional<SaveTimer> timer_;
};

}  // namespace tessera::train
