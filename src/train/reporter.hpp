// SPDX-License-Identifier: Apache-2.0
// What rank 0 reports about a run: lines, metrics.jsonl, the run's folder, the loss curve. Does
// nothing on other ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run_times.hpp"
#include "step_traffic.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/metrics/console.hpp"
#include "tessera/metrics/flops.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/metrics/prediction.hpp"
#include "tessera/metrics/run_folder.hpp"
#include "tessera/metrics/run_summary.hpp"
#include "tessera/metrics/tensorboard.hpp"
#include "tessera/planner/run_advice.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"
#include "tessera/train/validator.hpp"

namespace tessera::train {

class Reporter {
 public:
  /// Collective. `start`: what this attempt continues from.
  Reporter(comm::World& world, const plan::JobPlan& plan, Trainer& trainer,
           const LoadedState& start, const std::vector<std::string>& command_line);

  void begin_step();
  /// Collective: the worst rank's memory and traffic are asked for, at the end of a step.
  void measure();
  /// What was measured, and what else is known of it. `step` counts from 1; `validation`: what
  /// followed it.
  void step(std::int64_t step, const StepOutcome& outcome, double seconds,
            const std::optional<ValidationResult>& validation = std::nullopt);
  /// The run jumps back to the end of step `step`; later lines of metrics.jsonl are dropped.
  void rewind(std::int64_t step);
  /// A line for people, above the progress bar.
  void note(const std::string& line);
  /// Seconds that the run spent outside of steps.
  void spent_on_checkpoints(double seconds) { times_.spent("checkpoint", seconds); }
  /// Collective: what took the memory of the rank that took the most, as a line.
  void tell_memory();
  /// Collective. Draws the loss curve, removes the bar, and says where the time went. `complete`:
  /// the last step is done, and what came out is said. `advice`: of rank 0.
  void finish(bool complete, const planner::RunAdvice& advice);

 private:
  std::int64_t step_tokens() const;  ///< of the whole job
  void open_events(comm::World& world);
  bool is_shown(std::int64_t step);
  void open(comm::World& world, const std::vector<std::string>& command_line,
            const LoadedState& start, const std::vector<std::string>& hosts);
  /// `resumed`: from a checkpoint of the run's own.
  void set_metrics_aside(bool resumed) const;
  metrics::StepRecord record(std::int64_t step, const StepOutcome& outcome, double seconds) const;
  void add_shares(metrics::StepRecord& record) const;
  /// Lines, and the same in the run's folder; none of a machine that is not known.
  std::string prediction(const metrics::RunFigures& measured,
                         const planner::RunAdvice& advice) const;

  const plan::JobPlan& plan_;
  Trainer& trainer_;
  bool speaks_;
  metrics::FlopsPerToken flops_;
  metrics::Peak peak_;
  metrics::StepMeter meter_;
  StepTraffic traffic_;
  RunTimes times_;
  metrics::RunSummary summary_;
  std::int64_t first_step_;
  double shown_at_ = metrics::monotonic_seconds();
  std::unique_ptr<metrics::RunFolder> folder_;
  std::unique_ptr<metrics::JsonlSink> sink_;
  std::unique_ptr<metrics::Console> console_;
  /// on rank 0 or on all; none unless the job wants it
  std::unique_ptr<metrics::TensorBoardWriter> events_;
};

}  // namespace tessera::train
