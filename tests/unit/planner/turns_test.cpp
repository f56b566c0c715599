// SPDX-License-Identifier: Apache-2.0
// The best changes of one knob: each is a job that takes what was said of it, and none is better.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/planner/run_advice.hpp"
#include "tessera/planner/search.hpp"
#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

/// Eight GPUs that compute everything again.
JobCase slow_job() {
  return {"Slow",
          8,
          {"--model.flavor", "8B", "--training.local_batch_size", "1",
           "--activation_checkpoint.mode", "full"}};
}

/// Does not fit, by far.
JobCase large_job() {
  return {"Large",
          8,
          {"--model.flavor", "8B", "--training.local_batch_size", "4",
           "--training.global_batch_size", "32", "--activation_checkpoint.mode", "none"}};
}

struct Found {
  PlannedJob job;
  BestTurns best;

  explicit Found(const JobCase& from, double room = 0)
      : job(from), best(best_turns(job.space, room, job.machine, job.stack)) {}
};

Knob turned_knob(const PlannedJob& job, const Variant& variant) {
  std::vector<Knob> turned;
  for (const Knob knob : kEachKnob)
    if (variant[knob] != job.space.own()[knob]) turned.push_back(knob);
  EXPECT_EQ(turned.size(), 1U);
  return turned.front();
}

void expect_true_jobs(const Found& found, const std::vector<Option>& options) {
  std::set<Knob> knobs;
  for (const Option& option : options) {
    EXPECT_TRUE(knobs.insert(turned_knob(found.job, option.variant)).second);
    EXPECT_LE(option.changes.size(), 2U);
    const plan::JobPlan plan = plan::plan_job(option.job, found.job.space.own_work().gpus, 0);
    const Price again =
        price(workload_of(plan, found.job.stack), found.job.machine, found.job.stack);
    EXPECT_DOUBLE_EQ(again.memory.total(), option.price.memory.total());
    EXPECT_DOUBLE_EQ(again.step_seconds, option.price.step_seconds);
  }
}

/// Calls use(price) for every legal variant with one knob turned. Its own enumeration.
template <class Use>
void each_single(const PlannedJob& job, const Use& use) {
  for (const Knob knob : kEachKnob)
    for (const int value : job.space.values(knob)) {
      Variant variant = job.space.own();
      variant[knob] = value;
      if (variant == job.space.own() || !job.space.legal(variant)) continue;
      if (const auto changed = job.space.job(variant); !changed || changed->changes.size() > 2)
        continue;
      use(price(job.space.workload(variant), job.machine, job.stack));
    }
}

TEST(BestTurns, NoOtherChangeOfOneKnobIsFaster) {
  const Found found(slow_job());
  ASSERT_FALSE(found.best.faster.empty());
  expect_true_jobs(found, found.best.faster);
  double least = found.best.own.step_seconds;
  each_single(found.job, [&](const Price& other) {
    if (other.fits) least = std::min(least, other.step_seconds);
  });
  EXPECT_DOUBLE_EQ(found.best.faster.front().price.step_seconds, least);
  EXPECT_LT(least, 0.9 * found.best.own.step_seconds);
  for (const Option& option : found.best.faster) EXPECT_TRUE(option.price.fits);
}

TEST(BestTurns, WhatFitsComesFirstAndTheFastestOfIt) {
  const double room = 60 * kGiB;
  const Found found(large_job(), room);
  ASSERT_EQ(found.best.sparing.size(), 3U);
  EXPECT_DOUBLE_EQ(found.best.spared_room, 0.9 * room);
  expect_true_jobs(found, found.best.sparing);
  double least = 0;
  each_single(found.job, [&](const Price& other) {
    if (other.memory.total() <= 0.9 * room && (least == 0 || other.step_seconds < least))
      least = other.step_seconds;
  });
  ASSERT_GT(least, 0) << "no change is enough";
  EXPECT_LE(found.best.sparing.front().price.memory.total(), 0.9 * room);
  EXPECT_DOUBLE_EQ(found.best.sparing.front().price.step_seconds, least);
}

TEST(BestTurns, AJobThatDidNotFitTakesLessWhateverIsPredictedOfIt) {
  const Found found(slow_job(), 1000 * kGiB);
  ASSERT_TRUE(found.best.own.fits);
  EXPECT_DOUBLE_EQ(found.best.spared_room, 0.9 * found.best.own.memory.total());
  for (const Option& option : found.best.sparing)
    EXPECT_LT(option.price.memory.total(), 0.97 * found.best.own.memory.total());
}

std::vector<std::string> flags_of_debug(const std::vector<std::string>& more) {
  std::vector<std::string> flags{"--training.dataset_path",
                                 "x",
                                 "--model.name",
                                 "llama3",
                                 "--model.flavor",
                                 "debugmodel",
                                 "--training.local_batch_size",
                                 "8",
                                 "--training.global_batch_size",
                                 "16",
                                 "--training.seq_len",
                                 "256"};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

RunAdvice advice_of_debug(const std::vector<std::string>& more, const RunPlace& place) {
  const config::Resolved job = config::resolve(flags_of_debug(more));
  return advice_for(job, plan::plan_job(job, 2, 0), place);
}

TEST(RunAdvice, AHostIsKnownAndItsJobGetsBothKinds) {
  const RunAdvice advice = advice_of_debug({"--activation_checkpoint.mode", "full"}, {false, 2, 0});
  ASSERT_TRUE(advice.machine);
  EXPECT_TRUE(advice.machine->host);
  EXPECT_EQ(advice.against_memory.find("the planner's best changes: "), 0U)
      << advice.against_memory;
  EXPECT_NE(advice.against_memory.find(" % step time"), std::string::npos);
  ASSERT_FALSE(advice.faster.empty());
  EXPECT_NE(advice.faster.front().find(" wins "), std::string::npos);
}

TEST(RunAdvice, GpusAreKnownByTheJobAlone) {
  const RunAdvice unknown = advice_of_debug({}, {true, 2, 1e9});
  EXPECT_FALSE(unknown.machine);
  EXPECT_TRUE(unknown.faster.empty());
  EXPECT_NE(unknown.against_memory.find("(times as on h100-700w)"), std::string::npos);
  const RunAdvice named = advice_of_debug({"--job.machine", "b200"}, {true, 2, 1e9});
  ASSERT_TRUE(named.machine);
  EXPECT_EQ(named.machine->name, "b200");
  const RunAdvice other = advice_of_debug({"--job.machine", "b200"}, {false, 2, 1e9});
  ASSERT_TRUE(other.machine) << "the ranks are on hosts";
  EXPECT_TRUE(other.machine->host);
}

TEST(RunAdvice, APrecisionThatTheMachineLacksHasMemoryAndNoTimes) {
  const RunAdvice advice = advice_of_debug(
      {"--training.mixed_precision_param", "float32", "--activation_checkpoint.mode", "none"},
      {true, 2, 1e8});
  EXPECT_NE(advice.against_memory.find("activation_checkpoint.mode = \"full\" wins "),
            std::string::npos)
      << advice.against_memory;
  EXPECT_EQ(advice.against_memory.find("step time"), std::string::npos);
  EXPECT_EQ(advice.against_memory.find("h100"), std::string::npos);
}

TEST(RunAdvice, WhatCannotBePricedGetsNone) {
  const RunAdvice advice = advice_of_debug({"--parallelism.pipeline_parallel_degree", "2",
                                            "--parallelism.pipeline_parallel_split", "measured"},
                                           {false, 2, 0});
  EXPECT_TRUE(advice.against_memory.empty());
  EXPECT_TRUE(advice.faster.empty());
}

}  // namespace
}  // namespace tessera::planner
