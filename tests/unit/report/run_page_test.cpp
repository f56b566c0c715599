// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/run_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "well_formed.hpp"

namespace tessera::report {
namespace {

using metrics::StepRecord;
using tessera::test::content_of;
using tessera::test::put;
using tessera::test::TemporaryFolder;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// 40 steps, resumed at step 21; step 30 was skipped.
void write_steps(const TemporaryFolder& folder) {
  metrics::JsonlSink sink(folder / "metrics.jsonl", 0);
  for (std::int64_t step = 1; step <= 40; ++step) {
    StepRecord r;
    r.step = step;
    r.loss = step == 30 ? kNoValue : 4 + 1.0 / static_cast<double>(step);
    r.grad_norm = 1;
    r.lr = 1e-3;
    r.tokens = 1000;
    r.step_seconds = 0.5;
    r.tokens_per_second = 2000;
    r.mfu = kNoValue;
    r.memory_bytes = 1 << 20;
    r.extra = {{"time/forward", 0.3}, {"skipped_steps", step >= 30 ? 1.0 : 0.0}};
    if (step % 10 == 0) r.extra.emplace_back("validation/loss", 4.5);
    sink.write(r);
  }
}

void write_run(const TemporaryFolder& folder) {
  write_steps(folder);
  const metrics::RunFolder run(folder / "");
  run.add_attempt({"a",
                   "2026-11-23T07:00:00Z",
                   1,
                   8,
                   "pp=2",
                   {"node1"},
                   {"my job.toml"},
                   {{"mpi", "Open MPI 4.1.4"}, {"libtorch", "2.11.0"}}});
  run.add_attempt({"b", "2026-11-23T08:00:00Z", 21, 4, "tp=4", {"node1"}, {}, {}});
  run.write_config(
      config::resolve({"--training.steps", "40", "--lr_scheduler.warmup_steps", "2"}).to_toml());
}

TEST(ReadRun, ReadsStepsAttemptsAndSettings) {
  const TemporaryFolder folder;
  write_run(folder);
  const TrainingRun run = read_run(folder / "");
  EXPECT_EQ(run.records.size(), 40u);
  ASSERT_EQ(run.attempts.size(), 2u);
  EXPECT_EQ(run.attempts[0].versions.size(), 2u);
  EXPECT_EQ(run.attempts[1].mesh, "tp=4");
  EXPECT_THAT(resumed_at(run), testing::ElementsAre(21));
  EXPECT_EQ(column(run, "validation/loss").size(), 4u);
  EXPECT_EQ(run.settings_problem, "");
  const Totals totals = totals_of(run);
  EXPECT_EQ(totals.last_step, 40);
  EXPECT_EQ(totals.tokens, 40'000);
  EXPECT_EQ(totals.best_step, 40);
  EXPECT_DOUBLE_EQ(totals.last_loss, 4.025);
  EXPECT_EQ(totals.tokens_per_second, 2000);
  EXPECT_EQ(totals.skipped_steps, 1);
  EXPECT_TRUE(std::isnan(totals.mfu));
}

metrics::Attempt from_step(std::int64_t step) {
  metrics::Attempt attempt;
  attempt.first_step = step;
  return attempt;
}

TEST(ReadRun, ALaterStartFromTheBeginningDropsEarlierMarks) {
  TrainingRun run;
  for (const std::int64_t first : {1, 21, 61, 31}) run.attempts.push_back(from_step(first));
  EXPECT_THAT(resumed_at(run), testing::ElementsAre(21, 31));
  run.attempts.push_back(from_step(1));
  EXPECT_TRUE(resumed_at(run).empty());
}

TEST(ReadRun, RefusesWhatIsNoRun) {
  const TemporaryFolder folder;
  const auto message = [](const std::filesystem::path& path) -> std::string {
    try {
      read_run(path);
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.code())) + " " + error.what();
    }
    return "";
  };
  EXPECT_THAT(
      message(folder / ""),
      testing::AllOf(testing::StartsWith("2 "), testing::HasSubstr("is not the folder of a run")));
  EXPECT_THAT(message(folder / "none"),
              testing::AllOf(testing::StartsWith("2 "), testing::HasSubstr("is not a folder")));
  for (const char* damaged :
       {"", "{", "[]", "{\"attempts\": 3}", "{\"attempts\": [{\"ranks\": \"x\"}]}",
        "{\"attempts\": [{\"ranks\": 8e200}]}", "{\"attempts\": [{\"ranks\": 4294967298}]}",
        "{\"attempts\": [{\"first_step\": 1.5}]}", "{\"attempts\": [{\"first_step\": -1}]}"}) {
    put(folder / "run.json", damaged);
    EXPECT_THAT(message(folder / ""), testing::HasSubstr("run.json is not the JSON of a run"))
        << damaged;
  }
  std::filesystem::remove(folder / "run.json");
  put(folder / "metrics.jsonl", "x\n");
  EXPECT_THAT(message(folder / ""), testing::StartsWith("4 "));
  put(folder / "sweep.json", "{}");
  EXPECT_THAT(
      message(folder / ""),
      testing::AllOf(testing::StartsWith("2 "), testing::HasSubstr("run `tessera sweep collect ")));
}

TEST(RunPage, HasNoSharesOfATimeThatNoRecordSays) {
  const TemporaryFolder folder;
  put(folder / "metrics.jsonl", "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n");
  const auto html = [&] { return run_page(read_run(folder / ""), folder / "index.html"); };
  EXPECT_FALSE(has(html(), "<h2>Time"));
  EXPECT_FALSE(has(html(), "nan"));
  put(folder / "metrics.jsonl",
      "{\"step\": 1, \"step_seconds\": null}\n{\"step\": 2, \"step_seconds\": 0.5}\n");
  EXPECT_TRUE(has(html(), "<h2>Time"));
  EXPECT_FALSE(has(html(), "nan"));
}

TEST(RunPage, ShowsWhatWasPredictedBesideWhatWasMeasured) {
  const TemporaryFolder folder;
  write_run(folder);
  write_run_page(folder / "", folder / "index.html");
  EXPECT_FALSE(has(content_of(folder / "index.html"), "<h2>Prediction"));
  metrics::write_prediction(folder / "",
                            {"2 cores of X",
                             {0.5, 3 << 20, {{"forward", 0.1}, {"waiting in tp", 0.2}}},
                             {0.4, 2 << 20, {{"forward", 0.2}}}},
                            "[host]\n");
  write_run_page(folder / "", folder / "index.html");
  const std::string html = content_of(folder / "index.html");
  EXPECT_TRUE(well_formed(html));
  for (const char* part :
       {"2 cores of X",
        "<td>step</td><td class=\"n\">500 ms</td><td class=\"n\">400 ms</td><td "
        "class=\"n\">+25 %</td>",
        "3.00 MiB", "<td>waiting in tp</td><td class=\"n\">200 ms</td><td class=\"n\">0 ms</td>",
        "-50 %", "href=\"./prediction.json\"", "href=\"./machine.toml\""})
    EXPECT_TRUE(has(html, part)) << part;
}

TEST(RunPage, ShowsWhatTheRunHas) {
  const TemporaryFolder folder;
  write_run(folder);
  put(folder / "sample.txt", "In the <beginning>\n");
  put(folder / "pipeline.svg", "<svg/>");
  write_run_page(folder / "", folder / "index.html");
  const std::string html = content_of(folder / "index.html");
  EXPECT_TRUE(well_formed(html));
  for (const char* part :
       {"40 of 40", ">resumed</text>", "validation/loss <b>4.5</b>", "In the &lt;beginning&gt;",
        "data:image/svg+xml", "lr_scheduler.warmup_steps", "<td class=\"n\">21</td>",
        "Skipped steps", "href=\"./metrics.jsonl\""})
    EXPECT_TRUE(has(html, part)) << part;
  EXPECT_TRUE(has(html, "tessera train 'my job.toml'"));
  EXPECT_FALSE(has(html, "<td>training.seq_len</td>")) << "a default";
  EXPECT_FALSE(has(html, "<dt>MFU</dt>")) << "not known";
}

TEST(RunPage, LeavesOutWhatTheRunLacks) {
  const TemporaryFolder folder;
  put(folder / "metrics.jsonl", "");
  write_run_page(folder / "", folder / "index.html");
  const std::string html = content_of(folder / "index.html");
  EXPECT_TRUE(well_formed(html));
  EXPECT_TRUE(has(html, "No step is done yet."));
  EXPECT_TRUE(has(html, "config.toml cannot be read"));
  for (const char* part : {"Pipeline", "Sample", "Skipped steps", "Attempts"})
    EXPECT_FALSE(has(html, part)) << part;
}

TEST(RunPage, LinksFromElsewhereFindTheRunsFiles) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "my run");
  put(folder / "my run/metrics.jsonl", "{\"step\": 1, \"loss\": 2}\n");
  write_run_page(folder / "my run", folder / "page.html");
  EXPECT_TRUE(has(content_of(folder / "page.html"), "href=\"./my%20run/metrics.jsonl\""));
}

}  // namespace
}  // namespace tessera::report
