// SPDX-License-Identifier: Apache-2.0
#include "launched_job.hpp"

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
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "lost_rank.hpp"
#include "shared_memory_folder.hpp"
#include "tessera/base/child_process.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/rank_record.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSameWish{
    1};  ///< `timeout` signals its child and then the child's whole group
constexpr std::chrono::seconds kGrace{3};  ///< between "end now" and SIGKILL
constexpr std::chrono::seconds kBurial{
    30};  ///< for killed ranks: one that waits for a disk dies when it answers

[[noreturn]] void become(char* const* words, pid_t parent, const sigset_t& signals, int report) {
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
  execvp(words[0], words);
  const int code = errno;
  static_cast<void>(!write(report, &code, sizeof(code)));
  _exit(127);
}

pid_t start(const std::vector<std::string>& command, const sigset_t& signals) {
  int report[2];
  require(pipe2(report, O_CLOEXEC) == 0, ExitCode::environment, "no pipe for mpirun: {}",
          strerror(errno));
  const std::vector<char*> words = words_for_exec(command);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(words.data(), parent, signals, report[1]);
  close(report[1]);
  int failure = child < 0 ? errno : 0;
  if (child > 0 && read(report[0], &failure, sizeof(failure)) > 0) waitpid(child, nullptr, 0);
  close(report[0]);
  require(failure == 0, ExitCode::environment,
          "{} cannot be started: {}; install Open MPI or load its module", command.front(),
          strerror(failure));
  return child;
}

/// The session of a process, from the sixth field of /proc/PID/stat; its second one, the name, may
/// hold anything.
std::optional<pid_t> session_of(const fs::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  char state;
  int parent, group, session;
  if (std::sscanf(line.c_str() + name_end + 1, " %c %d %d %d", &state, &parent, &group, &session) !=
      4)
    return std::nullopt;
  return session;
}

/// Kills what is left of a session and says how many those were. mpirun gives each rank a process
/// group of its own, so the group is not enough.
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

/// Kills the session and waits until all of it is gone, so that nothing writes any more to the
/// folders of a job that has ended. The caller is the subreaper: who lost its parent is its child.
void end_session(pid_t session) {
  const timespec tick{0, 10'000'000};
  int left = 0;
  for (const auto deadline = Clock::now() + kBurial; Clock::now() < deadline;
       nanosleep(&tick, nullptr)) {
    left = kill_session(session);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (left == 0) return;
  }
  log::warning(
      "{} process(es) of the job do not end after SIGKILL; a file system they wait for may be down",
      left);
}

/// What all ranks have decided to end with; empty where one of them has not.
std::optional<int> decided_code(const std::vector<comm::RankRecord>& records) {
  const auto differs = [&](const comm::RankRecord& record) {
    return record.code != records.front().code;
  };
  if (records.empty() || records.front().code < 0 || std::ranges::any_of(records, differs))
    return std::nullopt;
  return records.front().code;
}

/// A job that runs: which signal to pass on, and when patience ends.
class Job {
 public:
  /// `records`: the folder of the ranks' records; empty where there are none to see.
  Job(pid_t mpirun, const sigset_t& signals, fs::path records)
      : mpirun_(mpirun), signals_(signals), records_(std::move(records)) {}

  /// Until nothing of it is left. Returns mpirun's status.
  int wait() {
    std::optional<int> status;
    while (!(status = status_of_mpirun())) {
      const timespec tick{end_ ? 0 : 1, end_ ? 100'000'000 : 0};
      const int signal = sigtimedwait(&signals_, nullptr, &tick);
      if (signal > 0 && signal != SIGCHLD) pass_on(signal);
      if (end_ && Clock::now() > *end_ + kGrace) kill_session(mpirun_);
    }
    end_session(mpirun_);
    return *status;
  }

  int code_of(int status, const std::vector<comm::RankRecord>& records) const {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const bool interrupt = asked_by_ == SIGINT || asked_by_ == SIGHUP;
    const int interrupted = 128 + (interrupt ? asked_by_ : SIGTERM);
    // Ended now: unless a rank ended before, mpirun says 1 then, or dies itself. What is saved
    // stays saved.
    if (end_ && (code == 1 || code > 128)) return decided_code(records).value_or(interrupted);
    // Ranks that had no handler yet died of the signal that was passed on: nothing could be saved.
    return code == 128 + SIGUSR1 || code == 128 + SIGUSR2 ? interrupted : code;
  }

  /// Whether the user asked for the end, in whatever way.
  bool was_asked() const { return asked_by_ != 0; }

 private:
  /// Where it has ended. Any other process that has ended here is this process's child because its
  /// parent has ended.
  std::optional<int> status_of_mpirun() const {
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
      if (child == mpirun_) return status;
    return std::nullopt;
  }

  void pass_on(int signal) {
    const auto now = Clock::now();
    const bool passed_on = signal == SIGUSR1 || signal == SIGUSR2;
    if (!end_ && !records_.empty() && !comm::any_rank_began(records_)) {
      asked_by_ = signal;
      end_at(now);  // mpirun loses signals for ranks that it has not started; nothing is lost
    } else if (passed_on) {
      kill(mpirun_, signal);
    } else if (asked_by_ == 0) {
      asked_by_ = signal;
      asked_at_ = now;
      kill(mpirun_, SIGUSR1);
    } else if (!end_ && now > asked_at_ + kSameWish) {
      end_at(now);
    }
  }

  void end_at(Clock::time_point now) {
    end_ = now;
    kill(mpirun_, SIGTERM);
  }

  pid_t mpirun_;
  sigset_t signals_;
  fs::path records_;
  int asked_by_ = 0;  ///< the signal that asked for a clean end
  Clock::time_point asked_at_;
  std::optional<Clock::time_point> end_;  ///< when the second one asked for it now
};

}  // namespace

int run_job(const JobPlan& plan) {
  const BlockedSignals blocked{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::optional<SharedMemoryFolder> folder;
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  if (plan.local) folder.emplace();
  if (folder && !folder->path().empty()) {
    setenv("OMPI_MCA_btl_vader_backing_directory", folder->path().c_str(), 0);
    setenv(comm::kRankRecordsVariable, folder->path().c_str(), 1);
  }
  Job job(start(plan.command, blocked.before()), blocked.handled(),
          folder ? fs::path(folder->path()) : fs::path());
  const int status = job.wait();
  const auto records =
      folder ? comm::read_rank_records(folder->path()) : std::vector<comm::RankRecord>{};
  const int code = job.code_of(status, records);
  const bool by_signal = code > 128 && code < 128 + NSIG && !job.was_asked();
  if (const std::string lost = by_signal ? how_a_rank_was_lost(code - 128, records) : "";
      !lost.empty())
    log::error("{}", lost);
  return code;
}

}  // namespace tessera::app
