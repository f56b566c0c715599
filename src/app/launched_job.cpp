#include "launched_job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

constexpr int kGraceSeconds = 3;    ///< between "end now" and SIGKILL
constexpr int kBurialSeconds = 30;  ///< for killed ranks to be gone: one that waits for a disk dies when it answers

/// Signals that this process takes one at a time instead of dying of them.
sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

/// Holds the handled signals back while it lives.
class BlockedSignals {
 public:
  BlockedSignals() {
    const sigset_t set = handled_signals();
    sigprocmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

/// A folder for the shared memory of the job's ranks, gone with this object: ranks that were killed leave theirs
/// behind.
class SharedMemoryFolder {
 public:
  SharedMemoryFolder() {
    std::string pattern = fmt::format("/dev/shm/tessera-launch-{}-XXXXXX", getpid());
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  ~SharedMemoryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

[[noreturn]] void become(const std::vector<std::string>& command, pid_t parent, const sigset_t& signals, int report) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // should the launcher be killed, mpirun ends its ranks
  if (getppid() != parent) _exit(1);
  // In another session a terminal cannot be read.
  if (isatty(STDIN_FILENO)) {
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    close(null);
  }
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int code = errno;
  static_cast<void>(!write(report, &code, sizeof(code)));
  _exit(127);
}

pid_t start(const std::vector<std::string>& command, const sigset_t& signals) {
  int report[2];
  require(pipe2(report, O_CLOEXEC) == 0, ExitCode::environment, "no pipe for mpirun: {}", strerror(errno));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(command, parent, signals, report[1]);
  close(report[1]);
  int failure = child < 0 ? errno : 0;
  if (child > 0 && read(report[0], &failure, sizeof(failure)) > 0) waitpid(child, nullptr, 0);
  close(report[0]);
  require(failure == 0, ExitCode::environment, "{} cannot be started: {}; install Open MPI or load its module",
          command.front(), strerror(failure));
  return child;
}

/// The session of a process, from the sixth field of /proc/PID/stat; its second one, the name, may hold anything.
std::optional<pid_t> session_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  char state;
  int parent, group, session;
  if (std::sscanf(line.c_str() + name_end + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
    return std::nullopt;
  return session;
}

/// Kills what is left of a session and says how many those were. mpirun gives each rank a process group of its own, so
/// the group is not enough.
int kill_session(pid_t session) {
  int found = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || session_of(entry.path()) != session) continue;
    kill(pid, SIGKILL);
    ++found;
  }
  return found;
}

/// Kills the session and waits until all of it is gone, so that nothing writes any more to the folders of a job that
/// has ended. The caller is the subreaper: who lost its parent is its child.
void end_session(pid_t session) {
  constexpr int kPerSecond = 100;
  const timespec tick{0, 1'000'000'000 / kPerSecond};
  int left = 0;
  for (int i = 0; i < kBurialSeconds * kPerSecond; ++i) {
    left = kill_session(session);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (left == 0) return;
    nanosleep(&tick, nullptr);
  }
  log::warning("{} process(es) of the job do not end after SIGKILL; a file system they wait for may be down", left);
}

/// A job that runs: which signal to pass on, and when patience ends.
class Job {
 public:
  explicit Job(pid_t mpirun) : mpirun_(mpirun) {}

  int wait() {
    const sigset_t set = handled_signals();
    int status = 0;
    for (;;) {
      const timespec tick{ending_ ? 0 : 1, ending_ ? 100'000'000 : 0};
      const int signal = sigtimedwait(&set, nullptr, &tick);
      if (waitpid(mpirun_, &status, WNOHANG) == mpirun_) break;
      if (signal > 0 && signal != SIGCHLD) pass_on(signal);
      if (ending_ && ++ticks_ > kGraceSeconds * 10) kill_session(mpirun_);
    }
    end_session(mpirun_);
    return code_of(status);
  }

 private:
  int code_of(int status) const {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    // Ranks that had no handler yet died of our SIGUSR1: nothing could be saved.
    return asked_by_ != 0 && code == 128 + SIGUSR1 ? 128 + asked_by_ : code;
  }

  void pass_on(int signal) {
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      kill(mpirun_, signal);
    } else if (asked_by_ == 0) {
      asked_by_ = signal;
      kill(mpirun_, SIGUSR1);
    } else {
      ending_ = true;
      kill(mpirun_, SIGTERM);
    }
  }

  pid_t mpirun_;
  int asked_by_ = 0;     ///< the signal that asked for a clean end
  bool ending_ = false;  ///< now
  int ticks_ = 0;
};

}  // namespace

int run_job(const JobPlan& plan) {
  const BlockedSignals blocked;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::optional<SharedMemoryFolder> folder;
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  if (plan.local) folder.emplace();
  if (folder && !folder->path().empty()) setenv("OMPI_MCA_btl_vader_backing_directory", folder->path().c_str(), 0);
  return Job(start(plan.command, blocked.before())).wait();
}

}  // namespace tessera::app
