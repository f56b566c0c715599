// SPDX-License-Identifier: Apache-2.0
// `tessera launch` from outside: exit codes, signals, and that nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"

namespace tessera {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

struct Outcome {
  int code;
  std::string text;  ///< standard output and error
};

std::vector<pid_t> launchers;  ///< that this test has started

/// A launch under way.
class Launch {
 public:
  explicit Launch(std::vector<std::string> args) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe");
    child_ = fork();
    if (child_ == 0) exec(args, ends[1]);
    close(ends[1]);
    output_ = ends[0];
    launchers.push_back(child_);
  }
  void signal(int number) const { kill(child_, number); }
  void read_until(const std::string& word) {
    char buffer[4096];
    while (text_.find(word) == std::string::npos) {
      const ssize_t n = read(output_, buffer, sizeof(buffer));
      if (n <= 0) return;
      text_.append(buffer, static_cast<std::size_t>(n));
    }
  }
  Outcome finish() {
    read_until("a word that never comes");
    close(output_);
    int status = 0;
    waitpid(child_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text_};
  }

 private:
  [[noreturn]] static void exec(const std::vector<std::string>& args, int output) {
    for (const char* name :
         {"OMP_NUM_THREADS", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
      unsetenv(name);
    dup2(output, 1);
    dup2(output, 2);
    close(output);
    std::vector<char*> words{const_cast<char*>(LAUNCH_PROBE), const_cast<char*>("launch")};
    for (const std::string& arg : args) words.push_back(const_cast<char*>(arg.c_str()));
    words.push_back(nullptr);
    execv(LAUNCH_PROBE, words.data());
    _exit(126);
  }
  pid_t child_ = 0;
  int output_ = -1;
  std::string text_;
};

Outcome launch(std::vector<std::string> args) { return Launch(std::move(args)).finish(); }

/// The code of two ranks that do `what` and, once they do, of a launcher that gets these signals.
int code_after(const char* what, std::initializer_list<int> signals) {
  Launch job({"-n", "2", "--", "probe", what});
  job.read_until("ready");
  for (const int signal : signals) job.signal(signal);
  return job.finish().code;
}

/// Folders in /dev/shm of the launchers of this test; other launches run on this machine too.
std::vector<std::string> folders() {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error))
    for (const pid_t launcher : launchers)
      if (entry.path().filename().string().starts_with("tessera-launch-" +
                                                       std::to_string(launcher) + "-"))
        found.push_back(entry.path());
  return found;
}

class LaunchTest : public testing::Test {
 protected:
  /// Who loses its parent becomes a child of this test: nothing can be left that it does not see.
  static void SetUpTestSuite() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

 private:
  void TearDown() override {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    EXPECT_EQ(errno, ECHILD);
    EXPECT_THAT(folders(), testing::IsEmpty());
  }
};

TEST_F(LaunchTest, ReturnsTheRanksCode) {
  EXPECT_EQ(launch({"-n", "2", "--", "probe", "return", "0"}).code, 0);
  const Outcome seven = launch({"-n", "3", "--", "probe", "return", "7"});
  EXPECT_EQ(seven.code, 7);
  EXPECT_THAT(seven.text, testing::Not(HasSubstr("Primary job")));
}

TEST_F(LaunchTest, ACrashedRankEndsTheJobAndIsSaid) {
  const Outcome outcome = launch({"-n", "2", "--", "probe", "crash"});
  EXPECT_EQ(outcome.code, 137);
  EXPECT_THAT(outcome.text, HasSubstr("was ended by signal 9 (killed)"));
}

TEST_F(LaunchTest, MoreRanksThanCoresAndOptionsOfMpirun) {
  EXPECT_THAT(launch({"-n", "6", "--mca", "btl", "self,vader", "--", "probe", "threads"}).text,
              HasSubstr("ranks 6 threads "));
}

/// A rank gets all the time that it needs for a checkpoint, and its code comes through, whichever
/// signal it was.
TEST_F(LaunchTest, TheFirstSignalAsksForACheckpoint) {
  Launch interrupted({"-n", "2", "--", "probe", "checkpoint"}),
      terminated({"-n", "2", "--", "probe", "checkpoint"});
  interrupted.read_until("ready");
  interrupted.signal(SIGINT);
  terminated.read_until("ready");
  terminated.signal(SIGTERM);
  EXPECT_EQ(interrupted.finish().code, 75);
  EXPECT_EQ(terminated.finish().code, 75);
}

TEST_F(LaunchTest, ASignalBeforeTheRanksListenIsAnInterruption) {
  EXPECT_EQ(code_after("deaf", {SIGINT}), 130);
}

/// mpirun loses a signal for ranks that it has not started. This one starts none.
TEST_F(LaunchTest, ASignalBeforeTheRanksStartIsNotLost) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "mpirun")
      << "#!/bin/sh\ntrap '' USR1 USR2\necho ready\nwhile :; do sleep 0.1; done\n";
  std::filesystem::permissions(folder / "mpirun", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}})
    EXPECT_EQ(code_after("deaf", {signal}), code) << signal;
  setenv("PATH", path.c_str(), 1);
}

/// The code of a job that gets SIGINT again and again: where the launcher had no time for the first
/// one, the second is taken for its echo.
int code_of_impatience(Launch& job) {
  std::jthread insist([&job](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1500)))
      job.signal(SIGINT);
  });
  return job.finish().code;
}

TEST_F(LaunchTest, TheSecondSignalEndsNow) {
  Launch job({"-n", "2", "--", "probe", "stubborn"});
  job.read_until("ready");
  EXPECT_EQ(code_of_impatience(job), 130);
}

/// Ranks that have saved, and are killed before they end.
TEST_F(LaunchTest, TheSecondSignalLeavesTheCodeThatAllRanksDecidedOn) {
  Launch job({"-n", "2", "--", "probe", "saved"});
  job.read_until("ready");
  job.signal(SIGINT);
  job.read_until("saved");
  EXPECT_EQ(code_of_impatience(job), 75);
}

/// `timeout` signals the process and then its group.
TEST_F(LaunchTest, ASecondSignalAtOnceIsTheSameWish) {
  EXPECT_EQ(code_after("checkpoint", {SIGINT, SIGTERM}), 75);
}

/// Passed on as it is, to ranks without a handler.
TEST_F(LaunchTest, ASignalThatEndsTheRanksIsNoCrash) {
  EXPECT_EQ(code_after("deaf", {SIGUSR2}), 143);
}

/// As nohup and careless parents leave them.
TEST_F(LaunchTest, IgnoredSignalsStayIgnored) {
  signal(SIGHUP, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
  Launch job({"-n", "2", "--", "probe", "deaf"});
  signal(SIGHUP, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  job.read_until("ready");
  job.signal(SIGHUP);
  job.signal(SIGTERM);
  EXPECT_EQ(job.finish().code, 143);
}

/// kill -9 of the launcher itself: mpirun notices and ends its ranks, and the next launcher removes
/// their memory.
TEST_F(LaunchTest, AKilledLauncherTakesItsRanksAlong) {
  Launch job({"-n", "2", "--", "probe", "checkpoint"});
  job.read_until("ready");
  EXPECT_EQ(launch({"-n", "1", "--", "probe", "return", "0"}).code, 0);
  EXPECT_THAT(folders(), testing::SizeIs(1));  // the living job's
  job.signal(SIGKILL);
  EXPECT_EQ(job.finish().code, -SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  EXPECT_EQ(launch({"-n", "1", "--", "probe", "return", "0"}).code, 0);
}

TEST_F(LaunchTest, WrongUseIsExplained) {
  EXPECT_THAT(launch({"-n", "2", "probe"}).text, HasSubstr("launch needs a command after --"));
  EXPECT_EQ(launch({"-n", "2", "probe"}).code, 2);
  EXPECT_THAT(launch({"-n", "two", "--", "probe"}).text, HasSubstr("not a number of ranks"));
  EXPECT_THAT(launch({"-n", "0", "--", "probe"}).text, HasSubstr("not a number of ranks"));
  EXPECT_EQ(launch({"--help"}).code, 0);
  EXPECT_THAT(launch({"-n", "2", "--help"}).text, HasSubstr("Usage: tessera launch"));
}

TEST_F(LaunchTest, TheProgramItselfIsNoCommand) {
  const Outcome outcome = launch({"-n", "2", "--", "tessera", "probe", "return", "0"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("omit the word tessera: `tessera launch -n 2 -- probe ...`"));
  EXPECT_THAT(launch({"-n", "2", "--", "prob"}).text, HasSubstr("did you mean 'probe'?"));
}

TEST_F(LaunchTest, ACrowdIsNoticed) {
  EXPECT_THAT(launch({"-n", "500", "--mca", "plm", "nonsense", "--", "probe", "return", "0"}).text,
              HasSubstr("500 ranks share"));
  EXPECT_THAT(launch({"-n", "1", "--", "probe", "return", "0"}).text,
              testing::Not(HasSubstr("share")));
}

TEST_F(LaunchTest, WithoutMpirun) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const Outcome outcome = launch({"-n", "2", "--", "probe", "return", "0"});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.text,
              HasSubstr("mpirun cannot be started: No such file or directory; install Open MPI"));
}

}  // namespace
}  // namespace tessera
