// SPDX-License-Identifier: Apache-2.0
// Points that run, and what their folders say of them afterwards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "sweep_files.hpp"
#include "tessera/base/host_name.hpp"
#include "tessera/sweep/local_run.hpp"

namespace tessera::sweep {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Run : public testing::Test {
 protected:
  Sweep sweep(const std::string& text) {
    folder_.file("base.toml", "[training]\ndataset_path = \"x\"\nsteps = 3\n");
    return read_sweep(folder_.file(
        "s.toml", "job = \"base.toml\"\nfolder = \"" + out().string() + "\"\n" + text));
  }
  Sweep four() { return sweep("[grid]\noptimizer.lr = [1, 2, 3, 4]\n"); }
  fs::path out() const { return folder_.path() / "out"; }
  fs::path point(int number) const { return out() / point_name(number); }
  /// Jobs that each run one shell line in their point's folder.
  std::vector<LocalJob> jobs(const std::map<int, std::string>& lines) const {
    std::vector<LocalJob> all;
    for (const auto& [number, line] : lines)
      all.push_back(
          {number, point(number), {"sh", "-c", "cd " + point(number).string() + "; " + line}});
    return all;
  }

  TemporaryFolder folder_;
};

const LocalObserver kSilent{[](const LocalJob&) {}, [](const LocalJob&, std::size_t) {}};
const std::string kStep = "echo '{\"step\": 3, \"loss\": 1.5}' >>metrics.jsonl; ";

TEST_F(Run, NotesHowEachPointEnded) {
  const Sweep s = four();
  prepare(s, points(s));
  std::vector<int> order;
  const bool stopped =
      run_local(jobs({{1, kStep + "exit 0"},
                      {2, "echo; echo 'tessera: there is no data (x); name some'; exit 4"},
                      {3, kStep + "exit 75"}}),
                {2, {}},
                {[&](const LocalJob& job) { order.push_back(job.number); },
                 [](const LocalJob&, std::size_t) {}});
  EXPECT_FALSE(stopped);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  const auto all = read_statuses(out());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].state, State::done);
  EXPECT_EQ(all[0].step, 3);
  EXPECT_EQ(all[0].steps, 3);
  EXPECT_EQ(all[1].state, State::failed);
  EXPECT_EQ(all[1].code, 4);
  EXPECT_EQ(all[1].reason, "there is no data (x); name some");
  EXPECT_EQ(all[2].state, State::stopped);
  EXPECT_EQ(all[3].state, State::missing);
  EXPECT_EQ(summary(all), "4 points: 1 done, 1 stopped, 1 failed, 1 missing");
  EXPECT_THAT(status_table(all), AllOf(HasSubstr("optimizer.lr=2"), HasSubstr("there is no data")));
}

TEST_F(Run, TellsTheReasonOfTheLastAttemptOnly) {
  const Sweep s = four();
  prepare(s, points(s));
  run_local(jobs({{1, "echo; echo 'tessera: first'; exit 2"}}), {1, {}}, kSilent);
  run_local(jobs({{1, "kill -9 $$"}}), {1, {}}, kSilent);
  const PointStatus status = read_status(point(1));
  EXPECT_EQ(status.attempts, 2);
  EXPECT_EQ(status.code, 137);
  EXPECT_THAT(status.reason, HasSubstr("killed"));
}

TEST_F(Run, AnEndOfZeroWithoutAStepIsAFailure) {
  const Sweep s = four();
  prepare(s, points(s));
  run_local(jobs({{1, "exit 0"}}), {1, {}}, kSilent);
  EXPECT_EQ(read_status(point(1)).state, State::failed)
      << "srun returns 0 when it could not start its ranks";
}

TEST_F(Run, APointWithoutAnEndIsRunningWhileItIsTouched) {
  const Sweep s = four();
  prepare(s, points(s));
  note_start(point(1), "slurm 7_1 on node1");
  EXPECT_EQ(read_status(point(1)).state, State::running);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(point(1) / "attempts.log", long_ago);
  const PointStatus dead = read_status(point(1));
  EXPECT_EQ(dead.state, State::failed);
  EXPECT_FALSE(dead.code);
  EXPECT_THAT(dead.reason, HasSubstr("slurm 7_1 on node1"));
}

TEST_F(Run, APointWhoseSweepWasKilledHereIsNotRunning) {
  const Sweep s = four();
  prepare(s, points(s));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const auto where = [](pid_t pid) {
    return fmt::format("local on {}, sweep's PID {}", host_name(), pid);
  };
  note_start(point(1), where(child));
  EXPECT_EQ(read_status(point(1)).state, State::failed);
  note_start(point(2), where(getpid()));
  EXPECT_EQ(read_status(point(2)).state, State::running);
  folder_.file("out/point-0001/.owner",
               fmt::format(R"({{"host": "{}", "pid": {}}})", host_name(), getpid()));
  EXPECT_EQ(read_status(point(1)).state, State::running) << "its ranks still save";
  folder_.file("out/point-0001/.owner", R"({"host": 3, "pid": "x"})");
  EXPECT_EQ(read_status(point(1)).state, State::failed);
}

TEST_F(Run, AFileOfTheFutureIsNoSignOfLife) {
  const Sweep s = four();
  prepare(s, points(s));
  note_start(point(1), "slurm 7_1 on node1");
  fs::last_write_time(point(1) / "attempts.log",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(read_status(point(1)).state, State::failed);
}

TEST_F(Run, SkipsPointsThatAnotherSweepRunsOrHasDone) {
  const Sweep s = four();
  prepare(s, points(s));
  run_local(jobs({{1, kStep}}), {1, {}}, kSilent);
  note_start(point(3), "local on other, sweep's PID 1");
  std::vector<int> started, ended;
  std::map<int, State> skipped;
  const LocalObserver observer{
      [&](const LocalJob& job) { started.push_back(job.number); },
      [&](const LocalJob&, std::size_t count) { ended.push_back(static_cast<int>(count)); },
      [&](const LocalJob& job, State state) { skipped[job.number] = state; }};
  EXPECT_FALSE(
      run_local(jobs({{1, "exit 3"}, {2, kStep}, {3, "exit 3"}, {4, kStep}}), {1, {}}, observer));
  EXPECT_THAT(started, ElementsAre(2, 4));
  EXPECT_THAT(ended, ElementsAre(2, 4)) << "those that are skipped count";
  EXPECT_EQ(skipped, (std::map<int, State>{{1, State::done}, {3, State::running}}));
  EXPECT_EQ(read_status(point(1)).attempts, 1);
  EXPECT_EQ(read_status(point(3)).attempts, 1);
  EXPECT_EQ(read_status(point(3)).state, State::running);
}

TEST_F(Run, ASignalStopsWhatRunsAndStartsNothingMore) {
  const Sweep s = four();
  prepare(s, points(s));
  std::thread user([this] {
    while (!fs::exists(point(1) / "ready")) usleep(10000);
    ::kill(::getpid(), SIGTERM);
  });
  const std::string wait = "trap 'exit 75' TERM; touch ready; while :; do sleep 0.05; done";
  EXPECT_TRUE(run_local(jobs({{1, wait}, {2, kStep}}), {1, {}}, kSilent));
  user.join();
  EXPECT_EQ(read_status(point(1)).state, State::stopped);
  EXPECT_EQ(read_status(point(2)).state, State::missing);
}

TEST_F(Run, APointWhoseTimeIsUpGoesOnLaterAsLongAsItMakesSteps) {
  const Sweep s = four();
  prepare(s, points(s));
  const std::string wait = "trap 'exit 75' TERM; while :; do sleep 0.05; done";
  const std::string step =
      "echo \"{\\\"step\\\": $(cat attempts.log | grep -c start)}\" >>metrics.jsonl; ";
  run_local(
      jobs({{1, "[ $(grep -c start attempts.log) -lt 3 ] || exit 0; " + step + wait}, {2, wait}}),
      {2, 2}, kSilent);
  EXPECT_EQ(read_status(point(1)).attempts, 3);
  EXPECT_EQ(read_status(point(1)).state, State::done);
  EXPECT_EQ(read_status(point(2)).attempts, 1) << "it would never end";
  EXPECT_EQ(read_status(point(2)).state, State::stopped);
  EXPECT_THAT(read_status(point(2)).reason, HasSubstr("its time limit of 00:00:02 was over"));
}

TEST_F(Run, APointWithoutCheckpointsHasAllItsTime) {
  const Sweep s = four();
  prepare(s, points(s));
  std::vector<LocalJob> all =
      jobs({{1, kStep + "trap 'exit 143' TERM; while :; do sleep 0.05; done"},
            {2, kStep + "sleep 1.2"}});
  for (LocalJob& job : all) job.saves = false;
  run_local(all, {2, 2}, kSilent);
  EXPECT_EQ(read_status(point(1)).state, State::failed);
  EXPECT_EQ(read_status(point(1)).attempts, 1);
  EXPECT_EQ(read_status(point(1)).reason,
            "its time limit of 00:00:02 was over: ended by signal 15 (Terminated)");
  EXPECT_EQ(read_status(point(2)).state, State::done) << "it got a signal before its limit";
}

TEST_F(Run, AVeryLongLimitIsOne) {
  const Sweep s = four();
  prepare(s, points(s));
  run_local(jobs({{1, kStep + "sleep 0.2"}}), {1, 12'960'000'000}, kSilent);
  EXPECT_EQ(read_status(point(1)).state, State::done);
}

TEST_F(Run, RefusesOtherSettingsForPointsThatHaveRun) {
  const Sweep s = four();
  prepare(s, points(s));
  const Sweep other = sweep("[grid]\noptimizer.lr = [5, 2, 3, 4]\n");
  EXPECT_NO_THROW(prepare(other, points(other))) << "nothing has run";
  folder_.file("out/point-0001/metrics.jsonl", "{\"step\": 1, \"loss\": 2}\n");
  EXPECT_NO_THROW(prepare(other, points(other)));
  const Sweep again = four();
  const std::string error = error_of(ExitCode::usage, [&] { prepare(again, points(again)); });
  EXPECT_THAT(error, AllOf(HasSubstr("point-0001 ran with --optimizer.lr=5"),
                           HasSubstr("and now has --optimizer.lr=1")));
  folder_.file("base.toml", "[training]\ndataset_path = \"y\"\n");
  const Sweep edited =
      read_sweep(folder_.file("t.toml", "job = \"base.toml\"\nfolder = \"" + out().string() +
                                            "\"\n[grid]\noptimizer.lr = [5, 2, 3, 4]\n"));
  EXPECT_THROW(prepare(edited, points(edited)), Error) << "the job file has changed since";
}

TEST_F(Run, RefusesOtherSettingsForPointsThatHaveBegun) {
  const Sweep s = four();
  prepare(s, points(s));
  const Sweep other = sweep("[grid]\noptimizer.lr = [1, 2, 3, 5]\n");
  EXPECT_NO_THROW(refuse_another_sweep(other, read_statuses(out()))) << "nothing has begun";
  note_start(point(4), "local on other, sweep's PID 1");
  EXPECT_THAT(error_of(ExitCode::usage, [&] { refuse_another_sweep(other, read_statuses(out())); }),
              HasSubstr("point-0004 ran with --optimizer.lr=4"));
  std::vector<PointStatus> queued = read_statuses(out());
  queued[0].state = State::queued;
  const Sweep first = sweep("[grid]\noptimizer.lr = [5, 2, 3, 4]\n");
  EXPECT_THROW(refuse_another_sweep(first, queued), Error);
}

TEST_F(Run, AddingPointsLeavesThoseThatHaveRun) {
  const Sweep s = four();
  prepare(s, points(s));
  run_local(jobs({{1, kStep}}), {1, {}}, kSilent);
  const Sweep more =
      sweep("[grid]\noptimizer.lr = [1, 2, 3, 4, 5]\n[[exclude]]\noptimizer.lr = 2\n");
  prepare(more, points(more));
  std::vector<int> numbers;
  for (const PointStatus& status : read_statuses(out())) numbers.push_back(status.number);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(read_status(point(1)).state, State::done);
}

TEST_F(Run, NamesADamagedPointFile) {
  const Sweep s = four();
  prepare(s, points(s));
  for (const char* text : {R"({"point": "two"})", R"({"point": 0, "steps": 4, "values": {}})",
                           R"({"point": 8589934592, "steps": 4, "values": {}})",
                           R"({"point": 2, "steps": -1, "values": {}})"}) {
    folder_.file("out/point-0002/point.json", text);
    const std::string error = error_of(ExitCode::data, [&] { read_statuses(out()); });
    EXPECT_THAT(error, HasSubstr("point-0002/point.json is damaged")) << text;
  }
}

}  // namespace
}  // namespace tessera::sweep
