#include "tessera/sweep/local_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <optional>

#include "point_files.hpp"
#include "tessera/base/error.hpp"

namespace tessera::sweep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSameWish{1};  ///< a terminal and `timeout` may both signal
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
  Pool(const std::vector<LocalJob>& jobs, std::size_t at_once, const Ended& ended)
      : jobs_(jobs), at_once_(at_once), ended_(ended) {}

  bool run() {
    for (;;) {
      while (!stopped_ && next_ < jobs_.size() && running_.size() < at_once_) start(jobs_[next_++]);
      if (running_.empty()) return stopped_.has_value();
      const int signal = held_.next();
      if (signal != 0 && signal != SIGCHLD) stop();
      bury();
    }
  }

 private:
  void start(const LocalJob& job) {
    char host[256] = {};
    gethostname(host, sizeof(host) - 1);
    note_start(job.folder, fmt::format("local on {}, sweep's PID {}", host, getpid()));
    const pid_t parent = getpid(), child = fork();
    if (child == 0) become(job, parent, held_.before());
    require(child > 0, ExitCode::environment, "cannot start a process: {}", strerror(errno));
    running_[child] = &job;
  }

  void stop() {
    if (stopped_ && Clock::now() - *stopped_ < kSameWish) return;
    stopped_ = Clock::now();
    for (const auto& [child, job] : running_) kill(child, SIGTERM);
  }

  /// Notes the end of those that have ended.
  void bury() {
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = running_.find(child);
      if (found == running_.end()) continue;
      const LocalJob& job = *found->second;
      running_.erase(found);
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      note_end(job.folder, code);
      ended_(job, code, ++count_);
    }
  }

  const std::vector<LocalJob>& jobs_;
  std::size_t at_once_, next_ = 0, count_ = 0;
  const Ended& ended_;
  HeldSignals held_;
  std::map<pid_t, const LocalJob*> running_;
  std::optional<Clock::time_point> stopped_;  ///< when the last signal was passed on
};

}  // namespace

bool run_local(const std::vector<LocalJob>& jobs, int at_once, const Ended& ended) {
  return Pool(jobs, static_cast<std::size_t>(at_once), ended).run();
}

}  // namespace tessera::sweep
