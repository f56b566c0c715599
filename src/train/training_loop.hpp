// SPDX-License-Identifier: Apache-2.0
// The steps of a run, and what is done between them.
#pragma once

#include <cstdint>
#include <optional>

#include "faults.hpp"
#include "job_saves.hpp"
#include "memory_report.hpp"
#include "memory_snapshot.hpp"
#include "microbatch_tuner.hpp"
#include "reporter.hpp"
#include "run_context.hpp"
#include "save_and_stop.hpp"
#include "step_trace.hpp"
#include "step_watch.hpp"
#include "tessera/train/validator.hpp"

namespace tessera::train {

/// All references must outlive the loop.
class TrainingLoop {
 public:
  TrainingLoop(RunContext& run, Trainer& trainer, SaveAndStop& policy, Reporter& reporter);

  /// Collective: all steps from the trainer's state on. Returns what the process ends with.
  ExitCode run();
  /// Collective: saves the state before the first step, and nothing else.
  ExitCode save_seed();

 private:
  void before_step(std::int64_t step);
  StepOutcome step_once();
  void after_compute();
  void end_traces(std::int64_t step);
  void cut_batch(std::int64_t step);
  void tune(double seconds);
  Faults::Verdict report(std::int64_t step, StepOutcome& outcome, double seconds);
  std::optional<ValidationResult> validate(std::int64_t step, Faults::Verdict verdict, bool last);
  void go_back(std::int64_t step);
  [[noreturn]] void stop_for_fault(std::int64_t step);
  ExitCode stopped(std::int64_t step, const StepVotes& votes);

  RunContext& run_;
  const plan::JobPlan& plan_;
  Trainer& trainer_;
  SaveAndStop& policy_;
  Reporter& reporter_;
  JobSaves saves_;
  Faults faults_;
  std::optional<Validator> validator_;    ///< if the job validates
  std::optional<MicrobatchTuner> tuner_;  ///< until it has chosen
  std::optional<StepTrace> trace_;        ///< if the job is profiled
  std::optional<MemorySnapshot> memory_snapshot_;
  std::optional<StepWatch> step_watch_;  ///< on rank 0
  AllocationRetries retries_;
  std::int64_t first_step_;  ///< of this attempt, from 1
};

}  // namespace tessera::train
