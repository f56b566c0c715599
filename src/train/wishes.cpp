#include "wishes.hpp"

#include <chrono>
#include <csignal>

#include "tessera/train/signals.hpp"

namespace tessera::train {
namespace {

// Signals are in the low bits, interrupts in the high ones, and between them what rank 0 has planned.
constexpr std::int64_t kSignal = 1, kSave = std::int64_t{1} << 30, kTimeIsUp = std::int64_t{1} << 31,
                       kInterrupt = std::int64_t{1} << 32;

constexpr const char* kWillSave = "signal received: saving after this step; a second signal stops now\n";
constexpr const char* kWillStop =
    "signal received: stopping after this step, nothing is saved; a second signal stops now\n";

std::int64_t flag_of(int signal) { return signal == 0 ? 0 : signal == SIGINT ? kInterrupt : kSignal; }

}  // namespace

Wishes::Wishes(const config::JobConfig& job, int rank, int ranks) : job_(job) {
  if (rank != 0) return;
  SignalGuard::answer_with(saves() ? kWillSave : kWillStop);
  if (!saves()) return;
  SavePlan::Options options;
  if (job.checkpoint.interval == 0)
    options.failures =
        job.checkpoint.mtbf_hours > 0 ? job.checkpoint.mtbf_hours * 3600 : usual_seconds_between_failures(ranks);
  options.end = job_end_from_environment();
  plan_.emplace(options, now());
}

bool Wishes::saves() const { return job_.checkpoint.enable && !job_.checkpoint.load_only; }

std::int64_t Wishes::flags() const {
  const std::int64_t signal = flag_of(SignalGuard::received());
  if (!plan_) return signal;
  const double time = now();
  return signal + (plan_->is_due(time) ? kSave : 0) + (plan_->is_last(time) ? kTimeIsUp : 0);
}

bool Wishes::ends(std::int64_t flags) { return (flags & ~kSave) != 0; }

bool Wishes::time_is_up(std::int64_t flags) { return (flags & kTimeIsUp) != 0; }

bool Wishes::must_save(std::int64_t step, std::int64_t flags) const {
  if (!saves()) return false;
  const std::int64_t interval = job_.checkpoint.interval;
  return flags != 0 || step == job_.training.steps || (interval > 0 && step % interval == 0) ||
         (step == 1 && job_.checkpoint.enable_first_step_checkpoint);
}

ExitCode Wishes::code_of_end(std::int64_t flags) const {
  return saves() ? ExitCode::requeue : flags >= kInterrupt ? ExitCode::interrupted : ExitCode::terminated;
}

double Wishes::now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace tessera::train
