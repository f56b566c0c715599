// `tessera launch` from outside: exit codes, signals, and that nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

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
    for (const char* name : {"OMP_NUM_THREADS", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
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

/// True of a process of the probe: living, or dead and not yet waited for.
bool is_probe(const std::filesystem::path& process, bool dead_too) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const std::string name = std::filesystem::path(LAUNCH_PROBE).filename().string().substr(0, 15);  // as Linux does
  const std::size_t at = line.find(" (" + name + ") ");
  return at != std::string::npos && (dead_too || line[at + name.size() + 4] != 'Z');
}

/// Processes of the probe, and folders in /dev/shm of the launchers of this test; other launches run on this machine
/// too.
std::vector<std::string> leftovers(bool dead_too) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error))
    if (is_probe(entry.path(), dead_too)) found.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator("/dev/shm", error))
    for (const pid_t launcher : launchers)
      if (entry.path().filename().string().starts_with("tessera-launch-" + std::to_string(launcher) + "-"))
        found.push_back(entry.path());
  return found;
}

class LaunchTest : public testing::Test {
 protected:
  bool dead_too_ = true;  ///< the launcher has waited for its ranks

 private:
  void TearDown() override { EXPECT_THAT(leftovers(dead_too_), testing::IsEmpty()); }
};

TEST_F(LaunchTest, ReturnsTheRanksCode) {
  EXPECT_EQ(launch({"-n", "2", "--", "probe", "return", "0"}).code, 0);
  const Outcome seven = launch({"-n", "3", "--", "probe", "return", "7"});
  EXPECT_EQ(seven.code, 7);
  EXPECT_THAT(seven.text, testing::Not(HasSubstr("Primary job")));
}

TEST_F(LaunchTest, ACrashedRankEndsTheJob) { EXPECT_EQ(launch({"-n", "2", "--", "probe", "crash"}).code, 137); }

TEST_F(LaunchTest, MoreRanksThanCoresAndOptionsOfMpirun) {
  EXPECT_THAT(launch({"-n", "6", "--mca", "btl", "self,vader", "--", "probe", "threads"}).text,
              HasSubstr("ranks 6 threads "));
}

/// A rank gets all the time that it needs for a checkpoint, and its code comes through, whichever signal it was.
TEST_F(LaunchTest, TheFirstSignalAsksForACheckpoint) {
  Launch interrupted({"-n", "2", "--", "probe", "checkpoint"}), terminated({"-n", "2", "--", "probe", "checkpoint"});
  interrupted.read_until("ready");
  interrupted.signal(SIGINT);
  terminated.read_until("ready");
  terminated.signal(SIGTERM);
  EXPECT_EQ(interrupted.finish().code, 75);
  EXPECT_EQ(terminated.finish().code, 75);
}

TEST_F(LaunchTest, ASignalBeforeTheRanksListenIsAnInterruption) {
  Launch job({"-n", "2", "--", "probe", "deaf"});
  job.read_until("ready");
  job.signal(SIGINT);
  EXPECT_EQ(job.finish().code, 130);
}

TEST_F(LaunchTest, TheSecondSignalEndsNow) {
  Launch job({"-n", "2", "--", "probe", "stubborn"});
  job.read_until("ready");
  const auto begin = std::chrono::steady_clock::now();
  job.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  job.signal(SIGINT);
  EXPECT_NE(job.finish().code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(8));
}

/// kill -9 of the launcher itself: mpirun notices and ends its ranks.
TEST_F(LaunchTest, AKilledLauncherTakesItsRanksAlong) {
  Launch job({"-n", "2", "--", "probe", "checkpoint"});
  job.read_until("ready");
  job.signal(SIGKILL);
  EXPECT_EQ(job.finish().code, -SIGKILL);
  dead_too_ = false;  // they are process 1's now
  std::error_code ignored;
  for (const std::string& path : leftovers(false))
    if (path.starts_with("/dev/shm")) std::filesystem::remove_all(path, ignored);  // its owner is dead
  for (int i = 0; i < 100 && !leftovers(false).empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

TEST_F(LaunchTest, WrongUseIsExplained) {
  EXPECT_THAT(launch({"-n", "2", "probe"}).text, HasSubstr("put it behind --"));
  EXPECT_EQ(launch({"-n", "2", "probe"}).code, 2);
  EXPECT_THAT(launch({"-n", "two", "--", "probe"}).text, HasSubstr("not a number of ranks"));
  EXPECT_THAT(launch({"-n", "0", "--", "probe"}).text, HasSubstr("not a number of ranks"));
  EXPECT_EQ(launch({"--help"}).code, 0);
}

TEST_F(LaunchTest, WithoutMpirun) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  const Outcome outcome = launch({"-n", "2", "--", "probe", "return", "0"});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.text, HasSubstr("mpirun cannot be started: No such file or directory; install Open MPI"));
}

}  // namespace
}  // namespace tessera
