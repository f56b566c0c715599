// SPDX-License-Identifier: Apache-2.0
#include "training_loop.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/comm/rank_record.hpp"
#include "tessera/train/signals.hpp"
#include "tessera/train/whole_tensors.hpp"

namespace tessera::train {
namespace {

ExitCode decide(ExitCode code) {
  SignalGuard::decide(static_cast<int>(code));
  return code;
}

/// For `tessera launch`, should this rank be killed.
void note_on_record(std::int64_t step) {
  if (step == 0) return;
  comm::rank_record::note_step(step);
  comm::rank_record::note_saved(step);
}

/// Collective. Before the first step, so that a folder for profiles that nothing can be written to
/// does not end the run later.
void make_profile_folder(comm::Communicator& control, const std::filesystem::path& folder,
                         const char* key) {
  comm::on_rank_zero(control, [&] {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (!problem && ::access(folder.c_str(), W_OK | X_OK) != 0)
      problem = {errno, std::generic_category()};
    require(!problem, ExitCode::environment,
            "cannot write to the folder {} ({}); choose another {}", folder.string(),
            problem.message(), key);
    return std::string();
  });
}

}  // namespace

TrainingLoop::TrainingLoop(RunContext& run, Trainer& trainer, SaveAndStop& policy,
                           Reporter& reporter)
    : run_(run),
      plan_(run.plan),
      trainer_(trainer),
      policy_(policy),
      reporter_(reporter),
      saves_(plan_, trainer, run.mesh.control(), run.device, policy, reporter),
      faults_(plan_, trainer, reporter, *run.samples.source),
      first_step_(trainer.state().step + 1) {
  if (run.samples.validation)
    validator_.emplace(plan_.data, run.model, run.mesh, trainer.stages(), *run.samples.validation);
  note_on_record(trainer.state().step);
  const bool steps_follow = first_step_ <= plan_.run.steps && !plan_.save.seed_only;
  if (const auto& snapshot = plan_.run.memory_snapshot) {
    if (steps_follow)
      make_profile_folder(run.world.control(), snapshot->folder,
                          "profiling.save_memory_snapshot_folder");
    memory_snapshot_.emplace(*snapshot, trainer);
  }
  if (const auto& trace = plan_.run.trace) {
    if (steps_follow)
      make_profile_folder(run.world.control(), trace->folder, "profiling.save_traces_folder");
    trace_.emplace(*trace, run.world, trainer);
  }
  if (plan_.run.gradients_file && trainer.state().step == 0 && steps_follow)
    make_profile_folder(run.world.control(), plan_.run.gradients_file->parent_path(),
                        "debug.dump_gradients");
  if (run.world.rank() == 0)
    step_watch_.emplace([&trainer] { return trainer.whereabouts(); },
                        [](const std::string& line) { log::info("{}", line); });
  if (!plan_.microbatch_trials.empty())
    tuner_.emplace(trainer, plan_.microbatch_trials, run.own.ranks);
}

ExitCode TrainingLoop::run() {
  if (trainer_.state().step >= plan_.run.steps) saves_.complete(trainer_.state().step);
  while (trainer_.state().step < plan_.run.steps) {
    const std::int64_t step = trainer_.state().step + 1;
    const double began = metrics::monotonic_seconds();
    before_step(step);
    StepOutcome outcome = step_once();
    retries_.warn_once(run_.world, run_.device);
    if (step == first_step_) run_.watch(plan_.comm.train_timeout_seconds);
    const Faults::Verdict verdict = report(step, outcome, metrics::monotonic_seconds() - began);
    if (verdict == Faults::Verdict::stop) stop_for_fault(step);
    if (verdict == Faults::Verdict::go_back) {
      end_traces(step);
      go_back(step);
      continue;
    }
    faults_.check_replicas(step);
    comm::rank_record::note_step(step);
    if (policy_.must_save(step, outcome.votes)) saves_.save(step);
    end_traces(step);
    if (outcome.votes.ends() && step < plan_.run.steps) return stopped(step, outcome.votes);
  }
  saves_.finish();
  return decide(ExitCode::done);
}

void TrainingLoop::before_step(std::int64_t step) {
  for (const auto& lock : run_.folder_locks) lock->check();
  comm::Watchdog::heartbeat(step);
  if (step_watch_) step_watch_->begin(step);
  reporter_.begin_step();
  run_.injected.arm(step, run_.world.rank());
  if (tuner_) tuner_->before_step();
  cut_batch(step);
  // A look costs a GPU nothing. On the host it takes as long as a small operator.
  const std::int64_t done = step - first_step_;
  trainer_.memory_peak().watch(!run_.device.is_cpu() || done < 3 || done % 100 == 0);
  if (trace_) trace_->begin_step(step);
  if (memory_snapshot_) memory_snapshot_->begin_step(step);
}

void TrainingLoop::end_traces(std::int64_t step) {
  if (trace_)
    if (const std::string kernels = trace_->end_step(step); !kernels.empty())
      reporter_.note(kernels);
  if (memory_snapshot_) memory_snapshot_->end_step(step);
}

StepOutcome TrainingLoop::step_once() {
  trainer_.compute();
  after_compute();
  StepOutcome outcome = trainer_.apply([this] { return policy_.votes(); });
  comm::Watchdog::at("", "after the optimizer");
  return outcome;
}

/// The gradients are there, and nothing is updated yet.
void TrainingLoop::after_compute() {
  saves_.hold_updates();
  const std::int64_t step = trainer_.state().step + 1;
  run_.injected.strike(step, run_.world.rank(), trainer_.stages());
  if (step > 1 || !plan_.run.gradients_file) return;
  dump_gradients(trainer_.stages().params(), run_.model, run_.mesh.control(),
                 *plan_.run.gradients_file);
}

/// As parallelism.pipeline_parallel_microbatch_steps says.
void TrainingLoop::cut_batch(std::int64_t step) {
  if (plan_.later_microbatches.empty()) return;
  const plan::MicrobatchPlan& now = plan_.microbatches_at(step);
  const std::int64_t rows = now.batch.microbatch_rows;
  if (rows == trainer_.batch_plan().microbatch_rows) return;
  trainer_.set_microbatches(now);
  reporter_.note(fmt::format("microbatches of {} sequences from step {} on", rows, step));
}

void TrainingLoop::tune(double seconds) {
  const std::string choice = tuner_->after_step(seconds);
  if (choice.empty()) return;
  reporter_.note(choice);
  tuner_->before_step();
  tuner_.reset();
}

/// The result of a step: checked for faults, measured, validated and reported.
Faults::Verdict TrainingLoop::report(std::int64_t step, StepOutcome& outcome, double seconds) {
  if (auto& timer = policy_.timer()) timer->step_took(seconds);
  if (outcome.skipped) saves_.finish();  // whatever the verdict: what was begun is from before
  const Faults::Verdict verdict = faults_.judge(step, outcome);
  reporter_.measure();
  reporter_.step(step, outcome, seconds, validate(step, verdict, outcome.votes.ends()));
  if (tuner_) tune(seconds);
  saves_.poll();
  return verdict;
}

/// Where a step counts and is one of those to be followed by validation, and time is left for it.
std::optional<ValidationResult> TrainingLoop::validate(std::int64_t step, Faults::Verdict verdict,
                                                       bool last) {
  if (last || !validator_ || verdict != Faults::Verdict::go_on || !validator_->due(step))
    return std::nullopt;
  const ValidationResult result = validator_->run(step);
  if (auto& timer = policy_.timer()) timer->validation_took(result.seconds);
  reporter_.note(fmt::format("step {}: validation loss {:.4f} over {} tokens in {:.2f} s", step,
                             result.loss, result.tokens, result.seconds));
  return result;
}

void TrainingLoop::go_back(std::int64_t step) {
  saves_.finish();
  const comm::Watchdog::Patience patience = run_.slow_disks();
  faults_.go_back(step);
}

/// The weights are those before the step.
void TrainingLoop::stop_for_fault(std::int64_t step) {
  if (step > 1 && policy_.saves()) saves_.save(step - 1);
  saves_.finish();
  faults_.stop(step);
}

ExitCode TrainingLoop::save_seed() {
  require(trainer_.state().step == 0, ExitCode::usage,
          "{} holds a checkpoint of step {}; a seed is made in a folder without checkpoints",
          plan_.load.checkpoints.string(), trainer_.state().step);
  saves_.save(0);
  saves_.finish();
  return decide(ExitCode::done);
}

ExitCode TrainingLoop::stopped(std::int64_t step, const StepVotes& votes) {
  saves_.finish();
  const ExitCode code = decide(policy_.code_of_end(votes));
  reporter_.note(fmt::format(
      "stopped {} after step {}{}", votes.time_is_up ? "before the allocation ends" : "by a signal",
      step, policy_.saves() ? "; run the same command to resume" : "; nothing was saved"));
  return code;
}

}  // namespace tessera::train
