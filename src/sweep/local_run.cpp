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
#include "tessera/base/child_process.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/host_name.hpp"

namespace tessera::sweep {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSameWish{1};  ///< a terminal and `timeout` may both signal
constexpr std::chrono::seconds kGrace{10};    ///< for the step during which a limit ends
constexpr int kNotStarted = 127;              ///< the shell's code for a command that is not there

/// Standard input is empty, and what the job writes goes to its folder.
void take_files(const std::string& output) {
  const int null = open("/dev/null", O_RDONLY);
  const int log = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (log < 0) {
    dprintf(STDERR_FILENO, "tessera: cannot write %s: %s\n", output.c_str(), strerror(errno));
    _exit(kNotStarted);
  }
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
}

[[noreturn]] void become(char* const* words, const std::string& output, pid_t parent,
                         const sigset_t& signals) {
  setpgid(0, 0);  // the terminal's Ctrl-C is for the sweep, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kNotStarted);
  take_files(output);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvp(words[0], words);
  dprintf(STDERR_FILENO, "tessera: cannot start %s: %s\n", words[0], strerror(errno));
  _exit(kNotStarted);
}

/// The next one; 0 after a second without any.
int next_signal(const BlockedSignals& blocked) {
  const timespec second{1, 0};
  return std::max(0, sigtimedwait(&blocked.handled(), nullptr, &second));
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
      const int signal = next_signal(blocked_);
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
    const std::vector<char*> words = words_for_exec(job.command);
    const std::string output = (job.folder / kOutputFile).string();
    const pid_t parent = getpid(), child = fork();
    if (child == 0) become(words.data(), output, parent, blocked_.before());
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
    constexpr std::int64_t kNever = 1'000'000'000;  // of the clock's nanoseconds there are 9e18
    const std::chrono::seconds limit(std::min(*limits_.seconds, kNever));
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
  const BlockedSignals blocked_{SIGINT, SIGTERM, SIGHUP, SIGCHLD};
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
