// SPDX-License-Identifier: Apache-2.0
#include "schedule_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tessera/plan/job_plan.hpp"

namespace tessera::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

plan::JobPlan plan_of(std::vector<std::string> flags) {
  flags.emplace_back("--training.dataset_path=not read");
  return plan::plan_job(config::resolve(flags), 1, 0);
}

/// What a job with flags `now` says after `done` steps of one with flags `then`.
std::string change(const std::vector<std::string>& then, const std::vector<std::string>& now,
                   std::int64_t done, std::int64_t start = 0) {
  const plan::JobPlan plan = plan_of(now);
  return schedule_change(plan.optimizer, plan.run.steps, config::resolve(then).to_toml(), done,
                         start);
}

TEST(ScheduleChange, NamesBothRatesOfTheNextStep) {
  EXPECT_EQ(change({"--training.steps=1000"}, {"--training.steps=2000"}, 1000),
            "the learning-rate schedule has 2000 steps (training.steps), and had 1000 in the "
            "checkpoint: the rate of "
            "step 1001 is 0.0004444 instead of 1e-06; set lr_scheduler.total_steps = 1000 to keep "
            "the old schedule");
  EXPECT_THAT(change({"--training.steps=2000"}, {"--training.steps=1000"}, 500),
              HasSubstr("and had 2000 in the"));
  EXPECT_THAT(change({"--training.steps=1000", "--lr_scheduler.total_steps=1500"},
                     {"--training.steps=1000"}, 500),
              HasSubstr("has 1000 steps (training.steps), and had 1500 in the checkpoint"));
}

TEST(ScheduleChange, FollowsAWarmUpThatTheOldLengthHadCut) {
  EXPECT_THAT(change({"--training.steps=100"}, {"--training.steps=1000"}, 50),
              HasSubstr("the rate of step 51 is 0.000204 instead of 0.000408;"));
}

TEST(ScheduleChange, OnAPlateauNamesAStepWhereTheRatesDiffer) {
  const std::string ratio = "--lr_scheduler.decay_ratio=0.2";
  EXPECT_THAT(change({"--training.steps=1000", ratio}, {"--training.steps=2000", ratio}, 500),
              HasSubstr("the rate of step 1000 is 0.0008 instead of 4e-06;"));
  EXPECT_THAT(change({"--training.steps=2000", ratio}, {"--training.steps=1000", ratio}, 500),
              HasSubstr("the rate of step 1000 is 4e-06 instead of 0.0008;"));
}

TEST(ScheduleChange, CountsFromTheStartOfTheSchedule) {
  EXPECT_THAT(change({"--training.steps=1000"}, {"--training.steps=2000"}, 900, 400),
              HasSubstr("the rate of step 901 is 0.0006667 instead of 0.0005;"));
}

TEST(ScheduleChange, IsNothingWhereNoRateChanges) {
  const std::string constant = "--lr_scheduler.decay_ratio=0";
  EXPECT_THAT(change({"--training.steps=1000"}, {"--training.steps=1000"}, 500), IsEmpty());
  EXPECT_THAT(change({"--training.steps=1000"},
                     {"--training.steps=2000", "--lr_scheduler.total_steps=1000"}, 500),
              IsEmpty());
  EXPECT_THAT(change({"--training.steps=1000"},
                     {"--training.steps=2000", "--lr_scheduler.total_steps=1500"}, 500),
              IsEmpty())
      << "the job says what it wants";
  EXPECT_THAT(change({"--training.steps=1000", constant}, {"--training.steps=2000", constant}, 500),
              IsEmpty());
  EXPECT_THAT(change({"--training.steps=1000"}, {"--training.steps=400"}, 500), IsEmpty())
      << "nothing is left to do";
}

TEST(ScheduleChange, IsNothingWhereTheRecordDoesNotSay) {
  const plan::OptimizerPlan plan = plan_of({"--training.steps=2000"}).optimizer;
  EXPECT_THAT(schedule_change(plan, 2000, "", 500, 0), IsEmpty());
  EXPECT_THAT(
      schedule_change(plan, 2000, "[training]\nsteps = -7\n[lr_scheduler]\nwarmup_steps = 200\n",
                      500, 0),
      IsEmpty());
}

}  // namespace
}  // namespace tessera::train
