// SPDX-License-Identifier: Apache-2.0
// The newest whole checkpoint is found without anyone's help, and what is passed over is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "checkpoint_fixture.hpp"
#include "tessera/checkpoint/retention.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

using Fallback = Checkpoint;

TEST_F(Fallback, TheHintIsNotFollowed) {
  for (const int step : {1, 2}) save_step(step);
  EXPECT_FALSE(check_hint(folder_.path()));
  for (const char* hint :
       {"step-00000001\n", "step-00000009\n", "", "../../etc\n", "step-00000002"}) {
    put(folder_ / "LATEST", hint);
    EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 2);
    ASSERT_TRUE(check_hint(folder_.path())) << hint;
    EXPECT_THAT(check_hint(folder_.path())->what,
                HasSubstr("does not name the latest checkpoint, step-00000002"));
  }
  fs::remove(folder_ / "LATEST");
  EXPECT_THAT(check_hint(folder_.path())->what, HasSubstr("LATEST' (No such file"));
  fs::create_directory(folder_ / "LATEST");
  EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 2);
  EXPECT_TRUE(check_hint(folder_.path()));
  EXPECT_THAT(lines_, testing::IsEmpty());
  EXPECT_FALSE(check_hint(folder_ / "none"));
}

TEST_F(Fallback, SwappedStepsAreFound) {
  for (const int step : {1, 2, 3}) save_step(step);
  fs::rename(folder_ / "step-00000003", folder_ / "x");
  fs::rename(folder_ / "step-00000002", folder_ / "step-00000003");
  fs::rename(folder_ / "x", folder_ / "step-00000002");
  for (const char* name :
       {"step-00000002", "step-00000003", "step-00000003/", "step-00000003/../step-00000003/."}) {
    EXPECT_THAT(message_of([&] { open(*control_, folder_ / name); }, ExitCode::checkpoint),
                HasSubstr("it is of step"));
    EXPECT_THAT(describe(verify(folder_ / name, false)), HasSubstr("it is of step"));
  }
  EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 1);
  EXPECT_EQ(lines_.size(), 2u);
  fs::rename(folder_ / "step-00000003", folder_ / "best");  // a name of one's own is nobody's claim
  EXPECT_EQ(open(*control_, folder_ / "best").step(), 2);
}

TEST_F(Fallback, WhatMayNotBeReadIsNotDamaged) {
  for (const int step : {1, 2}) save_step(step);
  const auto blank = hold(sample_tensors(), {}, 0, false);
  const uid_t before = ::geteuid();
  for (const char* name : {"step-00000002", "step-00000002/manifest.json",
                           "step-00000002/shard-pp0.r0.s0.cp0.tp0.h5"}) {
    const fs::perms usual = fs::status(folder_ / name).permissions();
    fs::permissions(folder_ / name, fs::perms::none);
    ASSERT_EQ(::seteuid(before == 0 ? 65534 : before), 0);  // root may read all
    const std::string why =
        message_of([&] { load_newest(*control_, folder_.path(), views_of(blank), {}); },
                   ExitCode::environment);
    ASSERT_EQ(::seteuid(before), 0);
    EXPECT_THAT(why, HasSubstr("Permission denied")) << name;
    fs::permissions(folder_ / name, usual);
  }
  EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 2);
  EXPECT_THAT(lines_, testing::IsEmpty());
}

TEST_F(Fallback, WhatMayNotBeReadIsNotPruned) {
  for (const int step : {1, 2, 3}) save_step(step);
  damage(folder_ / "step-00000001/manifest.json", 200);
  const PruneOptions options{.retention = {.keep_latest = 3}, .damaged = true};
  const uid_t before = ::geteuid();
  for (const char* name : {"step-00000002", "step-00000002/manifest.json",
                           "step-00000002/shard-pp0.r0.s0.cp0.tp0.h5"}) {
    const fs::perms usual = fs::status(folder_ / name).permissions();
    fs::permissions(folder_ / name, fs::perms::none);
    ASSERT_EQ(::seteuid(before == 0 ? 65534 : before), 0);
    const std::vector<Removal> removals = plan_prune(folder_.path(), options);
    ASSERT_EQ(::seteuid(before), 0);
    ASSERT_EQ(removals.size(), 1u) << name;
    EXPECT_EQ(removals[0].path, folder_ / "step-00000001") << name;
    fs::permissions(folder_ / name, usual);
  }
}

TEST_F(Fallback, AFileOfAnotherLengthIsPassedOverBeforeAnythingIsRead) {
  for (const int step : {1, 2, 3}) save_step(step);
  const auto shard = [&](const char* step) {
    return folder_ / step / "shard-pp0.r0.s0.cp0.tp0.h5";
  };
  put(shard("step-00000003"), content_of(shard("step-00000003")) + "x");
  fs::resize_file(shard("step-00000002"), 1000);
  EXPECT_EQ(open_newest(*control_, folder_.path(), log_)->step(), 1);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_THAT(lines_[1], HasSubstr("it has 1000 bytes"));
}

TEST_F(Fallback, WhenNoneIsLeftAllAreNamed) {
  for (const int step : {1, 2, 3}) save_step(step);
  damage_data("step-00000003");
  damage(folder_ / "step-00000002/manifest.json", 200);
  damage_data("step-00000001");
  const auto blank = hold(sample_tensors(), {}, 0, false);
  const LoadOptions options{Policy::strict, Policy::strict, log_};
  EXPECT_THAT(message_of([&] { load_newest(*control_, folder_.path(), views_of(blank), options); },
                         ExitCode::checkpoint),
              AllOf(HasSubstr("no checkpoint in " + folder_.path().string()),
                    HasSubstr("\n  step-00000003: "), HasSubstr("\n  step-00000002: "),
                    HasSubstr("\n  step-00000001: ")));
  EXPECT_THAT(lines_, testing::IsEmpty()) << "each reason is said once";
}

TEST_F(Fallback, NoValueOfADamagedOneStays) {
  save_step(1);
  auto held = hold(sample_tensors(), {}, 0, true);
  held.emplace_back(TensorSlice{"model/a", DType::f32, {2}, {{0}, {2}}},
                    true);  // only step 2 has it; filled first
  save(*control_, options(), {2}, views_of(held));
  damage_data("step-00000002");
  auto blank = hold(sample_tensors(), {}, 0, false);
  blank.emplace_back(TensorSlice{"model/a", DType::f32, {2}, {{0}, {2}}}, false);
  const LoadOptions lax{Policy::warn, Policy::warn, log_};
  EXPECT_THAT(
      message_of([&] { load_newest(*control_, folder_.path(), views_of(blank), lax); },
                 ExitCode::checkpoint),
      AllOf(HasSubstr("step-00000002 is damaged"), HasSubstr("step-00000001 lacks model/a")));

  LoadOptions without = lax;  // and of what was never to be loaded there is none
  without.leave_out = [](std::string_view name) { return name == "model/a"; };
  const auto opened = load_newest(*control_, folder_.path(), views_of(blank), without);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->step(), 1);
}

}  // namespace
}  // namespace tessera::checkpoint
