// SPDX-License-Identifier: Apache-2.0
#include "save_and_stop.hpp"

#include <chrono>
#include <csignal>

#include "tessera/train/signals.hpp"

namespace tessera::train {
namespace {

constexpr const char* kWillSave =
    "signal received: saving after this step; a second signal stops now\n";
constexpr const char* kWillStop =
    "signal received: stopping after this step, nothing is saved; a second signal stops now\n";

}  // namespace

SaveAndStop::SaveAndStop(const config::JobConfig& job, int rank, int ranks) : job_(job) {
  if (rank != 0) return;
  SignalGuard::answer_with(saves() ? kWillSave : kWillStop);
  if (!saves()) return;
  SavePlan::Options options;
  if (job.checkpoint.interval == 0)
    options.failures = job.checkpoint.mtbf_hours > 0 ? job.checkpoint.mtbf_hours * 3600
                                                     : usual_seconds_between_failures(ranks);
  options.end = job_end_from_environment();
  plan_.emplace(options, now());
}

bool SaveAndStop::saves() const { return job_.checkpoint.enable && !job_.checkpoint.load_only; }

StepVotes SaveAndStop::votes() const {
  StepVotes votes;
  const int signal = SignalGuard::received();
  votes.interrupt = signal == SIGINT;
  votes.stop = signal != 0 && signal != SIGINT;
  if (!plan_) return votes;
  const double time = now();
  votes.save = plan_->is_due(time);
  votes.time_is_up = plan_->is_last(time);
  return votes;
}

bool SaveAndStop::must_save(std::int64_t step, const StepVotes& votes) const {
  if (!saves()) return false;
  const std::int64_t interval = job_.checkpoint.interval;
  return votes.any() || step == job_.training.steps || (interval > 0 && step % interval == 0) ||
         (step == 1 && job_.checkpoint.enable_first_step_checkpoint);
}

ExitCode SaveAndStop::code_of_end(const StepVotes& votes) const {
  return saves()           ? ExitCode::requeue
         : votes.interrupt ? ExitCode::interrupted
                           : ExitCode::terminated;
}

double SaveAndStop::now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace tessera::train
