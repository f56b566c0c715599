// Why a run saves, or ends before its last step: its keys, signals, the plan of saves, the end of the allocation.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/train/save_plan.hpp"

namespace tessera::train {

/// Ranks agree by flags, which are summed over all of them with each step's own reduction.
class Wishes {
 public:
  /// Rank 0 alone looks at the clock, and answers signals; the others learn of it with the flags.
  Wishes(const config::JobConfig& job, int rank, int ranks);

  /// Whether the job writes checkpoints.
  bool saves() const;
  /// Of this rank, now.
  std::int64_t flags() const;
  static bool ends(std::int64_t flags);
  static bool time_is_up(std::int64_t flags);
  /// After step `step`; `flags` are the sum over ranks.
  bool must_save(std::int64_t step, std::int64_t flags) const;
  /// What the process ends with where `flags` end the run.
  ExitCode code_of_end(std::int64_t flags) const;

  /// Of a job that saves, on rank 0.
  std::optional<SavePlan>& plan() { return plan_; }
  /// Seconds since the epoch.
  static double now();

 private:
  const config::JobConfig& job_;
  std::optional<SavePlan> plan_;
};

}  // namespace tessera::train
