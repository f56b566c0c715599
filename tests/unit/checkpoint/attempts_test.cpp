// SPDX-License-Identifier: Apache-2.0
// What is left of saves that failed, and which checkpoints are kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint_fixture.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Checkpoint, AFailedSaveLeavesNothingAndHarmsNothing) {
  save_step(1);
  for (const SaveStage stage : {SaveStage::prepared, SaveStage::written}) {
    SaveOptions failing = options();
    failing.on_stage = [stage](SaveStage at) {
      if (at == stage) fail(ExitCode::checkpoint, "stopped for the test");
    };
    EXPECT_THAT(message_of([&] { save_step(2, failing); }, ExitCode::checkpoint),
                HasSubstr("stopped for the test"));
    EXPECT_THAT(names(), testing::ElementsAre("LATEST", "step-00000001"));
  }
  EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 1);
  save_step(2);
  EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 2);
}

TEST_F(Checkpoint, WritesThatFailAreNamed) {
  put(folder_ / "file", "");
  SaveOptions bad = options();
  bad.folder = folder_ / "file" / "checkpoint";
  EXPECT_THAT(message_of([&] { save_step(2, bad); }, ExitCode::checkpoint),
              HasSubstr("cannot make the folder"));
  bad.folder = "/proc/tessera";
  EXPECT_NE(message_of([&] { save_step(2, bad); }, ExitCode::checkpoint), "");
}

TEST_F(Checkpoint, AValidStepIsKeptAndADamagedOneMovedAside) {
  save_step(5);
  const std::string before = content_of(folder_ / "step-00000005/manifest.json");
  EXPECT_TRUE(save_step(5).kept_existing);
  EXPECT_EQ(content_of(folder_ / "step-00000005/manifest.json"), before);
  damage_data("step-00000005");
  EXPECT_FALSE(save_step(5).kept_existing);
  EXPECT_EQ(describe(verify(folder_ / "step-00000005", true)), "");
  EXPECT_THAT(names(), testing::ElementsAre("LATEST", "step-00000005",
                                            StartsWith("step-00000005.damaged-")));
  EXPECT_EQ(list_steps(folder_.path()).size(), 1u);
}

TEST_F(Checkpoint, TheNewestValidOneIsFoundAndDamagedOnesAreNamed) {
  EXPECT_FALSE(open_newest(*control_, folder_.path(), log_));
  EXPECT_FALSE(open_newest(*control_, folder_ / "none", log_));
  for (const int step : {1, 2, 3}) save_step(step);
  fs::remove(folder_ / "step-00000003/shard-pp0.r0.s0.cp0.tp0.h5");
  damage(folder_ / "step-00000002/manifest.json", 200);
  EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 1);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_THAT(lines_[0], testing::AllOf(HasSubstr("step-00000003"), HasSubstr("shard-pp0"),
                                        HasSubstr("No such file")));
  EXPECT_THAT(lines_[1], testing::AllOf(HasSubstr("step-00000002"), HasSubstr("checksum")));
  fs::remove(folder_ / "step-00000001/manifest.json");
  EXPECT_THAT(
      message_of([&] { open_newest(*control_, folder_.path(), log_); }, ExitCode::checkpoint),
      HasSubstr("no checkpoint in"));
}

TEST_F(Checkpoint, LoadingGoesOnToAnOlderOneWhenABlockIsDamaged) {
  save_step(1);
  save_step(2);
  damage_data("step-00000002");
  auto blank = hold(sample_tensors(), {}, 0, false);
  const auto opened = load_newest(*control_, folder_.path(), views_of(blank),
                                  {Policy::strict, Policy::strict, log_});
  EXPECT_EQ(opened->step(), 1);
  EXPECT_TRUE(all_right(blank));
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("the checksum of block 0 of"));
  damage_data("step-00000001");
  EXPECT_THAT(message_of([&] { load_newest(*control_, folder_.path(), views_of(blank)); },
                         ExitCode::checkpoint),
              HasSubstr("no checkpoint in"));
}

TEST_F(Checkpoint, OnlyTheNewestAreKept) {
  for (const int step : {1, 2, 3}) save_step(step);
  damage(folder_ / "step-00000003/manifest.json", 200);
  save_step(4, options(2));
  EXPECT_THAT(names(),
              testing::ElementsAre("LATEST", "step-00000002", "step-00000003", "step-00000004"));
  save_step(5, options(1));
  EXPECT_THAT(names(), testing::ElementsAre("LATEST", "step-00000005"));
}

TEST_F(Checkpoint, WhatDeadAttemptsLeftIsRemovedAndWhatMayLiveIsNot) {
  fs::create_directories(folder_ / "step-00000007.partial-of-someone");
  fs::create_directories(folder_ / "step-00000007.deleting-x");
  fs::create_directories(folder_ / "notes.partial-x");
  const fs::path old = folder_ / "step-00000006.partial-old";
  fs::create_directories(old);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  // The dead one's name is ours with a start time that no process has.
  std::string living;
  SaveOptions copying = options();
  copying.on_stage = [this, &living](SaveStage stage) {
    if (stage != SaveStage::prepared) return;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (const std::string name = entry.path().filename().string();
          name.starts_with("step-00000008.partial-")) {
        const std::string owner = name.substr(name.rfind('.'));
        EXPECT_THAT(owner, HasSubstr(fmt::format("-{}-", ::getpid())));
        fs::create_directories(
            folder_ / ("step-00000007.partial-x" + owner.substr(0, owner.rfind('-')) + "-1"));
        living = "step-00000007.partial-x" + owner;
        fs::create_directories(folder_ / living);
      }
  };
  save_step(8, copying);
  save_step(9);
  EXPECT_THAT(names(),
              testing::ElementsAre("LATEST", "notes.partial-x", "step-00000007.partial-of-someone",
                                   living, "step-00000008", "step-00000009"));
}

/// In a container nobody may wait for a rank that was killed, and then its number stays taken.
TEST_F(Checkpoint, AnOwnerThatOnlyWaitsForItsParentIsDead) {
  SaveOptions dying = options();
  dying.on_stage = [](SaveStage stage) {
    if (stage == SaveStage::written) ::_exit(0);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    save_step(7, dying);
    ::_exit(1);
  }
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(names(), testing::ElementsAre(testing::StartsWith("step-00000007.partial-")));
  save_step(8);
  EXPECT_THAT(names(), testing::ElementsAre("LATEST", "step-00000008"));
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace tessera::checkpoint
