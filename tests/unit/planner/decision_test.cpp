// SPDX-License-Identifier: Apache-2.0
// The questions of --explain: each answer is compared with the prices of all variants.
#include "tessera/planner/decision.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "unit/planner/planned_job.hpp"

namespace tessera::planner {
namespace {

const Question& question(const Decision& decision, const std::string& words) {
  for (const Question& one : decision.questions)
    if (one.text.find(words) != std::string::npos) return one;
  throw std::runtime_error("nobody asks: " + words);
}

Decision decision_of(const PlannedJob& job) { return decide(job.space, job.machine, job.stack); }

/// Of the variants that use `used`, but none of `closed`.
double least_seconds(const PlannedJob& job, std::optional<Knob> used,
                     const std::vector<Knob>& closed) {
  double least = std::numeric_limits<double>::infinity();
  each_legal(job.space, [&](const Variant& variant) {
    if (used && variant[*used] == 1) return;
    for (const Knob knob : closed)
      if (variant[knob] != 1) return;
    const Price it = price(job.space.workload(variant), job.machine, job.stack);
    if (it.fits) least = std::min(least, it.step_seconds);
  });
  return least;
}

class EachDecision : public testing::TestWithParam<JobCase> {};

TEST_P(EachDecision, AnswersAreThoseOfAllVariants) {
  const PlannedJob job(GetParam());
  const Decision decision = decision_of(job);
  const bool mixture = job.plan.model.shape.mixture.has_value();
  double least = std::numeric_limits<double>::infinity();
  const auto check = [&](const char* words, std::optional<Knob> used,
                         const std::vector<Knob>& closed) {
    const Question& asked = question(decision, words);
    const double seconds = least_seconds(job, used, closed);
    ASSERT_EQ(asked.best.has_value(), std::isfinite(seconds)) << words;
    if (asked.best) {
      EXPECT_DOUBLE_EQ(asked.best->price.step_seconds, seconds) << words;
    }
    EXPECT_TRUE(!used || asked.yes == (seconds < least)) << words;
    least = std::min(least, seconds);
  };
  check("batch", {}, {Knob::ep, Knob::tp, Knob::pp, Knob::cp});
  if (mixture) check("expert", Knob::ep, {Knob::tp, Knob::pp, Knob::cp});
  check("tensor", Knob::tp, {Knob::pp, Knob::cp});
  check("pipeline", Knob::pp, {Knob::cp});
  check("context", Knob::cp, {});
  ASSERT_TRUE(decision.choice);
  EXPECT_DOUBLE_EQ(decision.choice->price.step_seconds, least);
  const SearchResult found = search(job.space, job.machine, job.stack);
  EXPECT_EQ(decision.choice->variant, found.best.front().variant);
}

INSTANTIATE_TEST_SUITE_P(Decisions, EachDecision,
                         testing::Values(dense_job(), tight_job(),
                                         JobCase{"Mixture",
                                                 4,
                                                 {"--model.name", "deepseek_v3", "--model.flavor",
                                                  "16B", "--training.local_batch_size", "1",
                                                  "--training.seq_len", "4096"},
                                                 "b300"}),
                         &name_of_case);

TEST(Decision, MemoryAndBatchDecideFirst) {
  const Decision small = decision_of(PlannedJob({"", 8, {"--model.flavor", "1B"}}));
  EXPECT_TRUE(question(small, "one GPU").yes);
  const Decision middle = decision_of(PlannedJob({"", 8, {"--model.flavor", "8B"}}));
  EXPECT_FALSE(question(middle, "one GPU").yes);
  EXPECT_TRUE(question(middle, "all GPUs").yes);
  EXPECT_TRUE(question(middle, "batch").yes);
  const Decision large = decision_of(PlannedJob({"", 8, {"--model.flavor", "70B"}}));
  EXPECT_FALSE(question(large, "all GPUs").yes);
  EXPECT_FALSE(large.choice);
  const Decision few =
      decision_of(PlannedJob({"",
                              16,
                              {"--model.flavor", "8B", "--parallelism.tensor_parallel_degree", "2",
                               "--training.local_batch_size", "1"}}));
  EXPECT_FALSE(question(few, "batch").yes);
  EXPECT_NE(question(few, "batch").why.find("8 sequences a step for 16 GPUs, so 2 must share each"),
            std::string::npos)
      << question(few, "batch").why;
  EXPECT_TRUE(few.choice);
}

TEST(Decision, RecomputationAndFloat8HaveTheirOwnFigures) {
  const std::vector<std::string> flags{"--model.flavor", "8B", "--training.local_batch_size", "1"};
  const Decision wide = decision_of(PlannedJob({"", 8, flags}));
  EXPECT_TRUE(question(wide, "float8").yes);
  const Decision tight = decision_of(PlannedJob({"", 8, flags, "h100-700w", 20}));
  EXPECT_TRUE(question(tight, "recomputed").yes);
  const Decision old = decision_of(PlannedJob({"", 8, flags, "a100-80gb"}));
  EXPECT_FALSE(question(old, "float8").yes);
}

}  // namespace
}  // namespace tessera::planner
