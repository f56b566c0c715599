// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "well_formed.hpp"

namespace tessera::report {
namespace {

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

TrainingRun run_of(const std::string& folder, const std::vector<double>& losses,
                   std::int64_t first = 1) {
  TrainingRun run;
  run.folder = folder;
  for (const double loss : losses) {
    run.records.emplace_back();
    run.records.back().step = first++;
    run.records.back().loss = loss;
  }
  return run;
}

TEST(Divergence, FindsTheFirstDifferenceAndTheFirstBeyondTheTolerance) {
  const Divergence d =
      divergence(run_of("a", {6, 5, 4, 3}), run_of("b", {6, 5.001, 4.4, 3.1, 2}), 0.01);
  EXPECT_EQ(d.common_steps, 4);
  EXPECT_EQ(d.first_difference, 2);
  EXPECT_EQ(d.first_beyond, 3);
  EXPECT_EQ(d.largest_step, 3);
  EXPECT_NEAR(d.largest, 0.1, 1e-12);
}

TEST(Divergence, ComparesStepsAndNotLines) {
  const Divergence d = divergence(run_of("a", {6, 5, 4}), run_of("b", {4, 3}, 3), 0);
  EXPECT_EQ(d.common_steps, 1);
  EXPECT_FALSE(d.first_difference);
  EXPECT_EQ(divergence(run_of("a", {6}), run_of("b", {6}, 2), 0).common_steps, 0);
}

TEST(Divergence, ALossThatIsFiniteInOneRunOnlyIsInfinitelyDifferent) {
  const Divergence d =
      divergence(run_of("a", {kNoLoss, kNoLoss, 4}), run_of("b", {kNoLoss, 5, 4}), 0.5);
  EXPECT_EQ(d.first_difference, 2);
  EXPECT_EQ(d.first_beyond, 2);
  EXPECT_TRUE(std::isinf(d.largest));
}

TEST(Divergence, FromZeroIsANumberToReadToo) {
  EXPECT_THAT(comparison_text({run_of("a", {0}), run_of("b", {1})}, 0.01),
              testing::HasSubstr("largest inf % at step 1"));
}

TEST(DifferentSettings, AreThoseThatRunsDoNotShare) {
  std::vector<TrainingRun> runs(3);
  runs[0].settings = {
      {"job.dump_folder", "a", ""}, {"optimizer.lr", "1", "1"}, {"training.steps", "5", "5"}};
  runs[1].settings = {
      {"job.dump_folder", "b", ""}, {"optimizer.lr", "2", "1"}, {"training.steps", "5", "5"}};
  const auto differences = different_settings(runs);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].key, "optimizer.lr");
  EXPECT_THAT(differences[0].values, testing::ElementsAre("1", "2", "?"));
}

TEST(NamesOf, AreLongEnoughToTellRunsApart) {
  EXPECT_THAT(names_of({run_of("/x/sweep/1", {}), run_of("/x/sweep/2", {})}),
              testing::ElementsAre("1", "2"));
  EXPECT_THAT(names_of({run_of("/x/a/run", {}), run_of("/x/b/run", {}), run_of("/x/c", {})}),
              testing::ElementsAre("a/run", "b/run", "c"));
  EXPECT_THAT(names_of({run_of("/x/a", {}), run_of("/x/a", {})}), testing::ElementsAre("a", "a"));
  EXPECT_THAT(names_of({run_of("/x/run", {}), run_of("/run", {})}),
              testing::ElementsAre("x/run", "/run"));
}

TEST(Comparison, ShowsRanksAndMeshesThatDiffer) {
  std::vector<TrainingRun> runs{run_of("/x/a", {6, 5}), run_of("/x/b", {6, 4.5})};
  for (TrainingRun& run : runs) run.attempts.resize(1);
  for (TrainingRun& run : runs) run.attempts.back().ranks = 4;
  EXPECT_THAT(comparison_text(runs, 0.01), testing::HasSubstr("no setting differs"));
  runs[1].attempts.back().ranks = 8;
  runs[1].attempts.back().mesh = "pp1.r1.s8.cp1.tp1";
  EXPECT_THAT(comparison_text(runs, 0.01), testing::AllOf(testing::HasSubstr("ranks    4  8\n"),
                                                          testing::HasSubstr("pp1.r1.s8.cp1.tp1")));
  EXPECT_THAT(comparison_text(runs, 0.01), testing::Not(testing::HasSubstr("attempts")));
}

TEST(Comparison, TellsThatAnEarlierAttemptHadAnotherMesh) {
  std::vector<TrainingRun> runs{run_of("/x/a", {6, 5}), run_of("/x/b", {6, 4.5})};
  for (TrainingRun& run : runs) run.attempts.resize(2);
  for (TrainingRun& run : runs)
    for (metrics::Attempt& attempt : run.attempts) attempt.mesh = "pp1.r1.s2.cp1.tp1";
  runs[1].attempts.front().mesh = "pp1.r1.s1.cp1.tp2";
  EXPECT_THAT(comparison_text(runs, 0.01),
              testing::AllOf(
                  testing::HasSubstr("pp1.r1.s2.cp1.tp1  pp1.r1.s2.cp1.tp1 (last of 2 attempts)\n"),
                  testing::Not(testing::HasSubstr("ranks"))));
}

/// A run with so many tokens in its last step.
TrainingRun run_with_batch(const std::string& folder, std::int64_t tokens,
                           const std::string& global_batch) {
  TrainingRun run = run_of(folder, {6, 5});
  run.records.back().tokens = tokens;
  run.settings = {{"training.global_batch_size", global_batch, "-1"},
                  {"training.seq_len", "64", "2048"}};
  return run;
}

TEST(Comparison, ShowsTheGlobalBatchThatFollowsFromRanks) {
  using testing::HasSubstr;
  using testing::Not;
  const auto text = [](const TrainingRun& a, const TrainingRun& b) {
    return comparison_text({a, b}, 0.01);
  };
  const TrainingRun eight = run_with_batch("/x/8", 8 * 64, "-1"),
                    sixteen = run_with_batch("/x/16", 16 * 64, "-1");
  EXPECT_THAT(text(eight, sixteen), HasSubstr("global batch  8  16\n"));
  EXPECT_THAT(text(eight, eight), HasSubstr("no setting differs"));
  EXPECT_THAT(text(eight, run_with_batch("/x/8 too", 8 * 64, "8")),
              HasSubstr("global batch                8   8\n"))
      << "the same, and only one of them sets it";
  EXPECT_THAT(text(run_with_batch("/x/a", 8 * 64, "8"), run_with_batch("/x/b", 16 * 64, "16")),
              Not(HasSubstr("global batch")))
      << "the setting says it";
  EXPECT_THAT(text(eight, run_of("/x/unknown", {6})), Not(HasSubstr("global batch")));
}

TEST(Comparison, AsTextAndAsPage) {
  const std::vector<TrainingRun> runs{run_of("/x/a", {6, 5}), run_of("/x/<b>", {6, 4.5}),
                                      run_of("/x/c", {})};
  const std::string text = comparison_text(runs, 0.01);
  EXPECT_THAT(text, testing::HasSubstr(
                        "first differs at step 2; beyond 1 % from step 2; largest 10 % at step 2"));
  EXPECT_THAT(text, testing::HasSubstr("no step in common"));
  const std::string page = comparison_page(runs, 0.01, "/x/page.html");
  EXPECT_TRUE(well_formed(page));
  EXPECT_TRUE(has(page, "&lt;b&gt;"));
  EXPECT_FALSE(has(page, "nan"));
}

}  // namespace
}  // namespace tessera::report
