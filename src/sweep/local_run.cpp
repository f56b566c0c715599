// SPDX-License-Identifier: Apache-2.0
#include "tessera/sweep/local_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <map>
#include <optional>

#include "point_files.hpp"
#include "reading.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/host_name.hpp"

namespace tessera::sweep {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSameWish{1};  ///< a terminal and `timeout` may both signal
constexpr std::chrono::seconds kGrace{10};    ///< for the step during which a limit ends
constexpr int kNotStarted = 127;              ///< the shell's code for a command that is not there

/// Takes these signals one at a time instead of dying of them, for as long as it lives.
class HeldSignals {
 public:
  HeldSignals() {
    ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, a child's end cannot be waited for
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&held_, signal);
    }
    sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  /// The next one; 0 after a second without any.
  int next() const {
    const timespec second{1, 0};
    const int signal = sigtimedwait(&held_, nullptr, &second);
    return signal > 0 ? signal : 0;
  }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t held_, before_;
};

[[noreturn]] void become(const LocalJob& job, pid_t parent, const sigset_t& signals) {
  setpgid(0, 0);  // the terminal's Ctrl-C is for the sweep, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kNotStarted);
  const int null = open("/dev/null", O_RDONLY);
  const int log = open((job.folder / kOutputFile).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  std::vector<char*> words;
  for (const std::string& word : job.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  dprintf(STDERR_FILENO, "tessera: cannot start %s: %s\n", words[0], strerror(errno));
  _exit(kNotStarted);
}

class Pool {
 public:
  Pool(const std::vector<LocalJob>& jobs, const LocalLimits& limits, const LocalObserver& observer)
      : limits_(limits), observer_(observer) {
    for (const LocalJob& job : jobs) waiting_.push_back(&job);
  }

  bool run() {
    for (;;) {
      while (!stopped_ && !waiting_.empty() &&
             running_.size() < static_cast<std::size_t>(limits_.at_once))
        start();
      if (running_.empty()) return stopped_.has_value();
      const int signal = held_.next();
      if (signal != 0 && signal != SIGCHLD) stop();
      bury();
      for (auto& [child, running] : running_) hold_to_limit(child, running);
    }
  }

 private:
  struct Running {
    const LocalJob* job;
    Clock::time_point since;
    std::int64_t first_step;
    int signals = 0;  ///< for its limit
  };

  /// Starts the next job, unless another sweep has started its point meanwhile: two runs would
  /// write to one folder.
  void start() {
    const LocalJob& job = *waiting_.front();
    waiting_.pop_front();
    const PointStatus point = read_status(job.folder);
    if (point.state == State::running || point.state == State::done) {
      ++ended_;
      if (observer_.skipped) observer_.skipped(job, point.state);
      return;
    }
    note_start(job.folder, fmt::format("local on {}, sweep's PID {}", host_name(), getpid()));
    const pid_t parent = getpid(), child = fork();
    if (child == 0) become(job, parent, held_.before());
    require(child > 0, ExitCode::environment, "cannot start a process: {}", strerror(errno));
    running_[child] = {&job, Clock::now(), point.step};
    observer_.started(job);
  }

  void stop() {
    if (stopped_ && Clock::now() - *stopped_ < kSameWish) return;
    stopped_ = Clock::now();
    for (const auto& [child, running] : running_) kill(child, SIGTERM);
  }

  void hold_to_limit(pid_t child, Running& running) const {
    if (!limits_.seconds || running.signals == 2) return;
    const std::chrono::seconds limit(*limits_.seconds);
    const auto last = running.since + limit + (running.job->saves ? 0s : kGrace);
    const auto first = running.job->saves
                           ? last - std::chrono::seconds(warning_seconds(limit.count()))
                           : running.since + limit;
    const auto due = running.signals == 0 ? first : last;
    if (Clock::now() < due) return;
    ++running.signals;
    kill(child, SIGTERM);
  }

  /// Notes the end of those that have ended.
  void bury() {
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = running_.find(child);
      if (found == running_.end()) continue;
      const Running running = found->second;
      running_.erase(found);
      end(running, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }

  void end(const Running& running, int code) {
    const bool time_was_up = code != 0 && running.signals > 0 && !stopped_;
    note_end(running.job->folder, code,
             time_was_up ? fmt::format("its time limit of {} was over", time_text(*limits_.seconds))
                         : "");
    const bool saved = code == static_cast<int>(ExitCode::requeue) && running.job->saves;
    if (time_was_up && saved && read_status(running.job->folder).step > running.first_step)
      waiting_.push_back(running.job);
    else
      observer_.ended(*running.job, ++ended_);
  }

  const LocalLimits limits_;
  const LocalObserver& observer_;
  HeldSignals held_;
  std::deque<const LocalJob*> waiting_;
  std::map<pid_t, Running> running_;
  std::size_t ended_ = 0;
  std::optional<Clock::time_point> stopped_;  ///< when the last signal was passed on
};

}  // namespace

std::int64_t warning_seconds(std::int64_t limit_seconds) {
  constexpr std::int64_t kUsual = 120;
  return std::min(kUsual, limit_seconds / 2);
}

bool run_local(const std::vector<LocalJob>& jobs, const LocalLimits& limits,
               const LocalObserver& observer) {
  return Pool(jobs, limits, observer).run();
}

}  // namespace tessera::sweep
