// SPDX-License-Identifier: Apache-2.0
#include "save_and_stop.hpp"

#include <chrono>
#include <csignal>

#include "tessera/plan/failures.hpp"
#include "tessera/train/signals.hpp"

namespace tessera::train {
namespace {

constexpr const char* kWillSave =
    "signal received: saving after this step; a second signal stops now\n";
constexpr const char* kWillStop =
    "signal received: stopping after this step, nothing is saved; a second signal stops now\n";

template <class Clock>
double seconds_of() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

}  // namespace

SaveAndStop::SaveAndStop(const plan::JobPlan& plan, int rank, int ranks) : plan_(plan) {
  const std::optional<double> end = job_end_from_environment();  // all ranks refuse a wrong one
  if (rank != 0) return;
  SignalGuard::answer_with(saves() ? kWillSave : kWillStop);
  if (!saves()) return;
  SaveTimer::Options options;
  if (plan.save.interval == 0)
    options.failures = plan.save.mtbf_hours > 0 ? plan.save.mtbf_hours * 3600
                                                : plan::usual_seconds_between_failures(ranks);
  if (end) options.end = *end - seconds_of<std::chrono::system_clock>() + now();
  timer_.emplace(options, now());
}

StepVotes SaveAndStop::votes() const {
  StepVotes votes;
  const int signal = SignalGuard::received();
  votes.interrupt = signal == SIGINT;
  votes.stop = signal != 0 && signal != SIGINT;
  if (!timer_) return votes;
  const double time = now();
  votes.save = timer_->is_due(time);
  votes.time_is_up = timer_->is_last(time);
  return votes;
}

bool SaveAndStop::must_save(std::int64_t step, const StepVotes& votes) const {
  if (!saves()) return false;
  const std::int64_t interval = plan_.save.interval;
  return votes.any() || step == plan_.run.steps || (interval > 0 && step % interval == 0) ||
         (step == 1 && plan_.save.first_step);
}

ExitCode SaveAndStop::code_of_end(const StepVotes& votes) const {
  return saves()           ? ExitCode::requeue
         : votes.interrupt ? ExitCode::interrupted
                           : ExitCode::terminated;
}

/// Of a clock that nobody sets.
double SaveAndStop::now() { return seconds_of<std::chrono::steady_clock>(); }

}  // namespace tessera::train
