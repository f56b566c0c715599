// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/run_summary.hpp"
#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tessera::metrics {
namespace {

using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

StepRecord record(std::int64_t step, double loss, double skipped = 0) {
  return {.step = step,
          .loss = loss,
          .tokens = 1000,
          .step_seconds = 2,
          .mfu = 0.625,
          .memory_bytes = 349 << 20,
          .extra = {{"mfu_causal", 0.5}, {"skipped_steps", skipped}}};
}

TEST(RunSummary, SaysWhatCameOutAndWhereTheTimeWent) {
  RunSummary summary(1, 2);
  summary.step(record(1, 8.126284));
  summary.step(record(2, 2.5));
  const std::string text = summary.text("/nowhere", Kept::state, "  where the time went\n");
  EXPECT_THAT(
      text,
      StartsWith("training is complete (2 of 2 steps)\n"
                 "  loss           2.50000 (first step: 8.12628)\n"
                 "  speed          500 tok/s: 2.00k tokens in 4.0s\n"
                 "  mfu            62.5 % with full attention, as TorchTitan counts; 50.0 % with "
                 "causal attention\n"
                 "  memory         349 MiB on the largest rank\n"
                 "  where the time went\n"
                 "next:\n"));
}

TEST(RunSummary, HasNoUtilisationWhereThePeakIsUnknown) {
  StepRecord unknown = record(1, 8);
  unknown.mfu = std::numeric_limits<double>::quiet_NaN();
  RunSummary summary(1, 1);
  summary.step(unknown);
  EXPECT_THAT(summary.text("x", Kept::nothing), Not(HasSubstr("mfu")));
}

TEST(RunSummary, NamesTheFilesThatAreThere) {
  const TemporaryFolder scratch;
  EXPECT_THAT(RunSummary(1, 1).text(scratch / "", Kept::state), Not(HasSubstr("loss.svg")));
  put(scratch / "loss.svg", "x");
  put(scratch / "index.html", "x");
  const std::string text = RunSummary(1, 1).text(scratch / "", Kept::state);
  EXPECT_THAT(text, HasSubstr("  loss curve     " + (scratch / "loss.svg").string()));
  EXPECT_THAT(text, HasSubstr("  report         " + (scratch / "index.html").string()));
}

TEST(RunSummary, CountsSkippedSteps) {
  RunSummary summary(1, 3);
  summary.step(record(1, 8));
  EXPECT_THAT(summary.text("x", Kept::nothing), Not(HasSubstr("skipped")));
  summary.step(record(2, std::numeric_limits<double>::quiet_NaN(), 1));
  summary.step(record(3, std::numeric_limits<double>::quiet_NaN(), 2));
  EXPECT_THAT(summary.text("x", Kept::nothing),
              HasSubstr("skipped steps  2 of 3: loss or gradient was not finite\n"));
  EXPECT_THAT(summary.text("x", Kept::nothing), HasSubstr("loss           8.00000 ("))
      << "the last one that was a number";
}

TEST(RunSummary, OfAJobThatHasNothingLeftToDo) {
  EXPECT_THAT(
      RunSummary(31, 30).text("outputs", Kept::state),
      StartsWith(
          "training is complete (30 of 30 steps); there is nothing to do: raise training.steps to "
          "train longer\nnext:\n"));
}

TEST(RunSummary, OfAJobThatIsBeyondItsLastStep) {
  const std::string text = RunSummary(16, 10).text("outputs", Kept::state);
  EXPECT_THAT(
      text,
      StartsWith("the run has 15 steps, and training.steps is 10; there is nothing to do: raise "
                 "training.steps to train longer\nnext:\n"));
  EXPECT_THAT(text, HasSubstr("train longer   the same command with --training.steps 30\n"));
}

TEST(RunSummary, NamesTheFirstStepOfAResumedRun) {
  RunSummary summary(31, 32);
  summary.step(record(31, 4.8));
  summary.step(record(32, 4.5));
  EXPECT_THAT(summary.text("x", Kept::nothing),
              HasSubstr("loss           4.50000 (step 31: 4.80000)\n"));
}

TEST(RunSummary, CommandsFitWhatTheRunHas) {
  EXPECT_THAT(RunSummary(1, 30).text("my run", Kept::state),
              HasSubstr("generate text  tessera generate 'my run' --prompt "));
  EXPECT_THAT(RunSummary(1, 30).text("my run", Kept::state),
              HasSubstr("train longer   the same command with --training.steps 60\n"));
  EXPECT_THAT(RunSummary(1, 30).text("run", Kept::nothing), Not(HasSubstr("tessera generate")))
      << "there are no weights";
  EXPECT_THAT(RunSummary(1, 30).text("run", Kept::nothing),
              HasSubstr("with --checkpoint.enable\n"));
  EXPECT_THAT(RunSummary(1, 30).text("run", Kept::only_loaded),
              HasSubstr("train without checkpoint.load_only, in another job.dump_folder\n"));
  EXPECT_THAT(RunSummary(1, 30).text("run", Kept::model), Not(HasSubstr("train longer")))
      << "no run can resume from a model alone";
}

}  // namespace
}  // namespace tessera::metrics
