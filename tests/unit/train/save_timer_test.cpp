// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/save_timer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tessera::train {
namespace {

TEST(SaveTimer, SavesByYoungsInterval) {
  SaveTimer plan({.failures = 200'000}, 1000);
  plan.step_took(5);
  EXPECT_FALSE(plan.is_due(1594));
  EXPECT_TRUE(plan.is_due(1595)) << "the step ends ten minutes after the start";
  plan.save_began(1600);
  plan.save_took(0.4, 20);  // sqrt(2 x 0.4 x 200,000) = 400
  EXPECT_FALSE(plan.is_due(1994));
  EXPECT_TRUE(plan.is_due(1995));
  plan.save_took(0.1, 30);
  EXPECT_FALSE(plan.is_due(1794));
  EXPECT_TRUE(plan.is_due(1795));
  plan.save_took(0.1, 300);
  EXPECT_FALSE(plan.is_due(1894)) << "another save would begin before this one is over";
  EXPECT_TRUE(plan.is_due(1895));
}

TEST(SaveTimer, SavesSoonWhereMuchFails) {
  const SaveTimer plan({.failures = 50}, 0);  // sqrt(2 x 1 x 50) = 10
  EXPECT_FALSE(plan.is_due(9.9));
  EXPECT_TRUE(plan.is_due(10));
}

TEST(SaveTimer, IsNeverDueWhereTheJobNamesItsSteps) { EXPECT_FALSE(SaveTimer({}, 0).is_due(1e9)); }

TEST(SaveTimer, FindsTheCostOfASaveBeforeAShortAllocationEnds) {
  const SaveTimer plan({.failures = 1e6, .end = 1100}, 1000);
  EXPECT_FALSE(plan.is_due(1049));
  EXPECT_TRUE(plan.is_due(1050));
}

TEST(SaveTimer, LeavesTimeForTheLastSave) {
  SaveTimer plan({.end = 10'000}, 0);
  EXPECT_TRUE(plan.is_last(10'000 - 89)) << "30 s of slack and 60 s for a save nobody has seen";
  EXPECT_FALSE(plan.is_last(10'000 - 91));
  plan.step_took(20);
  plan.step_took(10);
  EXPECT_FALSE(plan.is_last(10'000 - 131));
  EXPECT_TRUE(plan.is_last(10'000 - 129)) << "this step and another";
  plan.save_took(1, 100);
  plan.save_took(1, 40);
  EXPECT_FALSE(plan.is_last(10'000 - 321));
  EXPECT_TRUE(plan.is_last(10'000 - 319)) << "one save, and another half as long again";
  for (int i = 0; i < 16; ++i) plan.step_took(1);
  EXPECT_FALSE(plan.is_last(10'000 - 283)) << "long steps are forgotten";
  plan.validation_took(50);
  plan.validation_took(40);
  EXPECT_FALSE(plan.is_last(10'000 - 333));
  EXPECT_TRUE(plan.is_last(10'000 - 331));
  EXPECT_FALSE(SaveTimer({}, 0).is_last(1e12));
}

TEST(SaveTimer, TakesTheEndFromTheEnvironment) {
  unsetenv("SLURM_JOB_END_TIME");
  unsetenv("TESSERA_JOB_END");
  EXPECT_EQ(job_end_from_environment(), std::nullopt);
  setenv("SLURM_JOB_END_TIME", "1700000000", 1);
  EXPECT_EQ(job_end_from_environment(), 1700000000);
  setenv("TESSERA_JOB_END", "12.5", 1);
  EXPECT_EQ(job_end_from_environment(), 12.5);
  setenv("TESSERA_JOB_END", "2026-11-22T10:00", 1);
  EXPECT_THROW(job_end_from_environment(), Error);
  unsetenv("TESSERA_JOB_END");
  setenv("SLURM_JOB_END_TIME", "soon", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(job_end_from_environment(), std::nullopt);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("SLURM_JOB_END_TIME = 'soon'"),
            std::string::npos);
  unsetenv("SLURM_JOB_END_TIME");
}

}  // namespace
}  // namespace tessera::train
