// SPDX-License-Identifier: Apache-2.0
// Every file call of a save fails once, in every way that it can, and the process ends once after
// each of them: the older or the newer checkpoint must be there afterwards, whole, and the next
// save must work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>

#include "faults/fault_shim.hpp"
#include "stepped.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/checkpoint/saver.hpp"

namespace tessera::checkpoint {
namespace {

using tessera::test::put;
using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using faults::Kind;
using testing::HasSubstr;

constexpr std::int64_t kOld = 1, kNew = 2, kNext = 3;

enum class Way { blocking, asynchronous };

/// With both ways to save.
class Faults : public testing::TestWithParam<Way> {
 protected:
  Faults() { log::configure(log::Level::off, ""); }
  ~Faults() override { log::configure(log::Level::warning, ""); }

  fs::path run() const { return top_ / "run"; }
  fs::path folder() const { return run() / "checkpoint"; }

  SaveResult save_step(std::int64_t step) {
    SaveOptions options{folder(), "pp0.r0.s0.cp0.tp0", "pp1.r1.s1.cp1.tp1", "x = 1\n"};
    options.keep_latest_k = 1;
    Saver saver(*control_);
    Stepped state(step);
    if (GetParam() == Way::blocking) return saver.save(options, {step}, state.views());
    saver.begin(options, {step}, state.views());
    state.set(-7);  // training goes on
    std::optional<SaveResult> result;
    for (int polls = 0; !result && polls < 100'000; ++polls, ::usleep(100)) result = saver.poll();
    return result.value();
  }

  /// Puts the folders back to what `prepare` makes of them.
  void start(const std::function<void()>& prepare) {
    if (!fs::exists(template_)) {
      fs::create_directories(run());
      prepare();
      fs::copy(run(), template_, fs::copy_options::recursive);
    }
    fs::remove_all(run());
    fs::copy(template_, run(), fs::copy_options::recursive);
  }

  /// One whole checkpoint is what a load finds, and nothing that is listed is broken.
  std::int64_t step_found(const std::string& after) {
    for (const StepFolder& step : list_steps(folder()))
      if (!is_planted(step.path)) {
        EXPECT_EQ(describe(verify(step.path, true)), "") << after;
      }
    Stepped blank(-1);
    const auto opened = load_newest(*control_, folder(), blank.views());
    if (!opened) return -1;
    EXPECT_EQ(blank.step(), opened->step()) << after;
    return opened->step();
  }
  /// The damaged one that a test made itself.
  static bool is_planted(const fs::path& step) { return fs::exists(step / "planted"); }

  void next_save_works(const std::string& after) {
    EXPECT_NO_THROW(save_step(kNext)) << after;
    EXPECT_EQ(step_found(after), kNext) << after;
  }

  /// Of dead attempts nothing.
  void only_these_are_left(const std::string& after) const {
    for (const auto& entry : fs::directory_iterator(folder())) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(name == "LATEST" || name == "step-00000003" ||
                  name.starts_with("step-00000002.damaged-"))
          << after << " left " << name;
    }
    EXPECT_EQ(
        std::distance(fs::directory_iterator(folder() / "step-00000003"), fs::directory_iterator()),
        3)
        << after;
  }

  /// The file calls of an undisturbed save.
  std::vector<faults::Call> calls(const std::function<void()>& prepare) {
    start(prepare);
    faults::arm({run().string(), 0, Kind::none});
    save_step(kNew);
    return faults::disarm();
  }

  void fail_each_call(const std::function<void()>& prepare, int error_number);
  void end_after_each_call(const std::function<void()>& prepare);

  TemporaryFolder top_;
  fs::path template_ = top_ / "template";
  std::unique_ptr<comm::Communicator> control_ = comm::make_self_communicator("control");
  const std::function<void()> over_an_older_one_ = [this] { save_step(kOld); };
  const std::function<void()> over_a_damaged_one_ = [this] {
    save_step(kOld);
    fs::create_directories(folder() / "step-00000002");
    put(folder() / "step-00000002/planted", "no manifest here");
  };
  const std::function<void()> the_first_ = [] {};
};

/// "No space left on device at call 12 (pwrite /tmp/...)".
std::string describe(const faults::Call& call, std::size_t nth, const char* what) {
  return fmt::format("{} at call {} ({} {} {})", what, nth, call.name, call.path, call.to);
}

void Faults::fail_each_call(const std::function<void()>& prepare, int error_number) {
  const bool had_an_older_one = &prepare != &the_first_;
  const std::size_t count = calls(prepare).size();
  ASSERT_GT(count, 20u);
  for (std::size_t nth = 1; nth <= count; ++nth) {
    start(prepare);
    faults::arm({run().string(), static_cast<std::int64_t>(nth), Kind::fail, error_number});
    std::string message;
    try {
      save_step(kNew);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ExitCode::checkpoint || error.code() == ExitCode::environment);
      message = error.what();
    }
    const auto made = faults::disarm();
    ASSERT_GE(made.size(), nth);
    const std::string after = describe(made[nth - 1], nth, std::strerror(error_number));
    const std::int64_t found = step_found(after);
    if (error_number == EINTR) {
      EXPECT_EQ(message, "") << after;
    }
    if (message.empty()) {
      EXPECT_EQ(found, kNew) << after;
    } else {
      EXPECT_THAT(message, testing::AllOf(HasSubstr(top_.path().string()),
                                          HasSubstr(std::strerror(error_number))))
          << after;
      EXPECT_TRUE(found == kNew || found == (had_an_older_one ? kOld : -1))
          << after << ": found " << found;
    }
    next_save_works(after);
    if (HasFailure()) return;
  }
}

void Faults::end_after_each_call(const std::function<void()>& prepare) {
  const auto undisturbed = calls(prepare);
  bool was_old = true;
  for (std::size_t nth = 1; nth <= undisturbed.size(); ++nth) {
    start(prepare);
    const pid_t child = ::fork();
    if (child == 0) {
      faults::arm({run().string(), static_cast<std::int64_t>(nth), Kind::stop});
      save_step(kNew);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    const std::string after = describe(undisturbed[nth - 1], nth, "ended");
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << after;
    const std::int64_t found = step_found(after);
    EXPECT_TRUE(found == kNew || (was_old && found == kOld)) << after << ": found " << found;
    was_old = found == kOld;  // once the new one is there it stays
    next_save_works(after);
    only_these_are_left(after);
    if (HasFailure()) return;
  }
  EXPECT_FALSE(was_old);
}

TEST_P(Faults, AnErrorOfTheDisk) { fail_each_call(over_an_older_one_, EIO); }
TEST_P(Faults, AFullDisk) { fail_each_call(over_an_older_one_, ENOSPC); }
TEST_P(Faults, AReadOnlyDisk) { fail_each_call(over_an_older_one_, EROFS); }
TEST_P(Faults, AnInterruptedCallIsRepeated) { fail_each_call(over_an_older_one_, EINTR); }
TEST_P(Faults, AnErrorOverADamagedOne) { fail_each_call(over_a_damaged_one_, EIO); }
TEST_P(Faults, AnErrorInTheFirstSave) { fail_each_call(the_first_, EIO); }
TEST_P(Faults, AnInterruptionOverADamagedOne) { fail_each_call(over_a_damaged_one_, EINTR); }
TEST_P(Faults, TheEndOverAnOlderOne) { end_after_each_call(over_an_older_one_); }
TEST_P(Faults, TheEndOverADamagedOne) { end_after_each_call(over_a_damaged_one_); }

TEST_P(Faults, AWriteThatIsCutShortGoesOn) {
  const auto undisturbed = calls(over_an_older_one_);
  for (std::size_t nth = 1; nth <= undisturbed.size(); ++nth) {
    if (undisturbed[nth - 1].name.find("write") == std::string::npos) continue;
    start(over_an_older_one_);
    faults::arm({run().string(), static_cast<std::int64_t>(nth), Kind::short_write});
    EXPECT_NO_THROW(save_step(kNew));
    faults::disarm();
    EXPECT_EQ(step_found(describe(undisturbed[nth - 1], nth, "cut short")), kNew);
  }
}

std::string name_of(const testing::TestParamInfo<Way>& way) {
  constexpr std::array names{"Blocking", "Asynchronous"};
  return names[static_cast<std::size_t>(way.param)];
}
INSTANTIATE_TEST_SUITE_P(Each, Faults, testing::Values(Way::blocking, Way::asynchronous), name_of);

/// The calls in their order: what a rename makes visible was flushed before, and the rename itself
/// afterwards.
class Order {
 public:
  explicit Order(std::vector<faults::Call> calls) : calls_(std::move(calls)) {}
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  std::size_t rename_to(const fs::path& to) const {
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (calls_[i].name == "rename" && calls_[i].to == to) return i;
    return npos;
  }
  /// The last call before `end` of one of these names for the path; 0 if there is none.
  std::size_t last(const std::vector<std::string>& names, const std::string& path,
                   std::size_t end) const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < std::min(end, calls_.size()); ++i)
      if (calls_[i].path == path &&
          std::find(names.begin(), names.end(), calls_[i].name) != names.end())
        last = i + 1;
    return last;
  }
  /// Files that were written in `folder` before `end`.
  std::vector<std::string> written_in(const fs::path& folder, std::size_t end) const {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < end; ++i)
      if (calls_[i].name == "create" && fs::path(calls_[i].path).parent_path() == folder)
        paths.push_back(calls_[i].path);
    return paths;
  }
  const faults::Call& operator[](std::size_t i) const { return calls_[i]; }

 private:
  std::vector<faults::Call> calls_;
};

TEST_P(Faults, NothingBecomesVisibleBeforeItIsDurable) {
  const Order order(calls(the_first_));
  const std::size_t commit = order.rename_to(folder() / "step-00000002");
  ASSERT_NE(commit, Order::npos);
  const std::string partial = order[commit].path;
  const auto written = order.written_in(partial, commit);
  EXPECT_GE(written.size(), 2u);
  for (const std::string& path : written) {
    EXPECT_GT(order.last({"fsync", "fdatasync"}, path, commit),
              order.last({"pwrite", "write", "ftruncate"}, path, commit))
        << path;
    EXPECT_GT(order.last({"fsync"}, partial, commit), order.last({"create"}, path, commit)) << path;
  }
  EXPECT_GT(order.last({"fsync"}, folder(), Order::npos), commit + 1);
  EXPECT_GT(order.last({"fsync"}, run(), commit), order.last({"mkdir"}, folder(), commit))
      << "checkpoint/ itself";
}

}  // namespace
}  // namespace tessera::checkpoint
