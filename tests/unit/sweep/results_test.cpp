// SPDX-License-Identifier: Apache-2.0
// What came of a sweep, with members that failed or never ran.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <sstream>
#include "key_axis.hpp"

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "sweep_files.hpp"

namespace tessera::sweep {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Collect : public testing::Test {
 protected:
  /// A point with the losses of its steps from 1, and the line that ended it.
  void point(int number, const std::string& values, const std::string& losses,
             const std::string& end) {
    const std::string name = point_name(number) + "/";
    folder_.file(name + "point.json", "{\"point\": " + std::to_string(number) +
                                          ", \"steps\": 3, \"values\": " + values + "}");
    if (!end.empty())
      folder_.file(name + "attempts.log",
                   "start 2026-01-01T00:00:00Z local on h, sweep's PID 1\n" + end + "\n");
    std::string lines;
    int step = 0;
    std::istringstream words(losses);
    for (std::string loss; words >> loss;) {
      ++step;
      lines += "{\"step\": " + std::to_string(step) + ", \"loss\": " + loss +
               ", \"tokens\": 100, \"step_seconds\": 0.5, \"validation/loss\": " +
               (step == 2 ? loss : "null") + "}\n";
    }
    if (!lines.empty()) folder_.file(name + "metrics.jsonl", lines);
  }
  void four() {
    point(1, R"({"optimizer.lr": 0.1, "model.flavor": "8B"})", "9 8 7",
          "end 2026-01-01T00:00:01Z 0");
    point(2, R"({"optimizer.lr": 0.01, "model.flavor": "8B"})", "9 3 4",
          "end 2026-01-01T00:00:01Z 0");
    point(3, R"({"optimizer.lr": 0.1, "model.flavor": "a,b"})", "9 null",
          "end 2026-01-01T00:00:01Z 6");
    point(4, R"({"optimizer.lr": 0.01, "model.flavor": "a,b"})", "", "");
  }
  Results all(const std::string& by = "") { return collect(read_statuses(folder_.path()), by); }

  TemporaryFolder folder_;
};

TEST_F(Collect, SortsByTheBestAndKeepsThoseWithoutAResult) {
  four();
  const Results results = all("loss");
  std::vector<int> numbers;
  for (const PointResult& result : results.points) numbers.push_back(result.status.number);
  EXPECT_THAT(numbers, ElementsAre(2, 1, 3, 4));
  EXPECT_EQ(results.points[0].best, 3);
  EXPECT_EQ(results.points[0].best_step, 2);
  EXPECT_EQ(results.points[0].last, 4);
  EXPECT_EQ(results.points[0].tokens_per_second, 200);
  EXPECT_EQ(results.points[0].seconds, 1.5);
  EXPECT_EQ(results.points[2].best, 9);
  EXPECT_THAT(results.keys, ElementsAre("optimizer.lr", "model.flavor"));
}

TEST_F(Collect, PrefersTheValidationLossAndTakesAnyColumn) {
  four();
  EXPECT_EQ(all().by, "validation/loss");
  EXPECT_EQ(all().points[0].curve.size(), 1U);
  const std::string error = error_of(ExitCode::usage, [&] { all("validation/los"); });
  EXPECT_THAT(error, HasSubstr("did you mean 'validation/loss'?"));
  EXPECT_EQ(all("tokens").points[0].best, 100);
  for (const char* column : {"lr", "tokens_per_second", "tps", "mfu", "memory_bytes"})
    EXPECT_EQ(all(column).by, column);
}

TEST_F(Collect, WritesCsvAndJson) {
  four();
  const Results results = all("loss");
  const std::string csv = results_csv(results);
  EXPECT_THAT(
      csv, testing::StartsWith(
               "point,state,exit_code,step,steps,attempts,best_loss,best_step,last_loss,tokens_per_"
               "second,seconds,skipped,optimizer.lr,model.flavor,reason\r\n"
               "2,done,0,3,3,1,3,2,4,200,1.5,0,0.01,8B,\r\n"));
  EXPECT_THAT(
      csv, AllOf(HasSubstr("\r\n3,failed,6,2,3,1,9,1,9,"), HasSubstr("\"a,b\",stopped on values")));
  EXPECT_THAT(csv, HasSubstr("\r\n4,missing,,0,3,0,,,,,,0,0.01,\"a,b\",\r\n"));
  const auto json = nlohmann::json::parse(results_json(results));
  EXPECT_EQ(json["points"][0]["curve"][1], (nlohmann::json{2, 3.0}));
  EXPECT_TRUE(json["points"][3]["best"].is_null());
}

TEST_F(Collect, KeepsEveryDigitOfLargeIntegers) {
  for (const int number : {1, 2})
    point(number, "{\"debug.seed\": 900719925474099" + std::to_string(1 + number) + "}", "9",
          "end 2026-01-01T00:00:01Z 0");
  const Results results = all("loss");
  EXPECT_THAT(results_csv(results),
              AllOf(HasSubstr(",9007199254740992,\r\n"), HasSubstr(",9007199254740993,\r\n")));
  EXPECT_THAT(results_table(results, 9), HasSubstr("9007199254740993"));
}

TEST_F(Collect, ShowsSkippedStepsWhereAPointHasSome) {
  four();
  EXPECT_THAT(results_table(all("loss"), 9), Not(HasSubstr("skipped")));
  EXPECT_THAT(results_page(all("loss"), {"t", "", "", {}}), Not(HasSubstr("skipped")));
  point(5, R"({"optimizer.lr": 1e30, "model.flavor": "8B"})", "2", "end 2026-01-01T00:00:01Z 0");
  folder_.file("point-0005/metrics.jsonl",
               "{\"step\": 1, \"loss\": 2, \"skipped_steps\": 0}\n"
               "{\"step\": 3, \"loss\": null, \"skipped_steps\": 2.0}\n");
  const PointStatus status = read_status(folder_.path() / "point-0005");
  EXPECT_EQ(status.state, State::done);
  EXPECT_EQ(status.skipped, 2);
  EXPECT_EQ(status.reason, "2 of 3 steps skipped: loss or gradient not finite");
  EXPECT_THAT(status_table({status}), HasSubstr("\n    2 of 3 steps skipped"));
  const Results results = all("loss");
  EXPECT_EQ(nlohmann::json::parse(results_json(results))["points"][2]["skipped"], 2);
  EXPECT_THAT(results_csv(results),
              HasSubstr(",2,1e+30,8B,2 of 3 steps skipped: loss or gradient not finite\r\n"));
  EXPECT_THAT(results_table(results, 9),
              AllOf(HasSubstr("  last     skipped  lr"), HasSubstr("  2        1e+30")));
  EXPECT_THAT(results_page(results, {"t", "", "", {}}), HasSubstr("skipped</th>"));
}

TEST_F(Collect, APointThatSkippedStepsIsBehindThoseThatDidNot) {
  four();
  for (const int number : {5, 6}) {
    const std::string end =
        number == 5 ? "end 2026-01-01T00:00:01Z 0" : "end 2026-01-01T00:00:01Z 6";
    point(number, R"({"optimizer.lr": 1e30, "model.flavor": "8B"})", "1", end);
    folder_.file(
        point_name(number) + "/metrics.jsonl",
        "{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"loss\": null, \"skipped_steps\": 1}\n");
  }
  const Results results = all("loss");
  std::vector<int> numbers;
  for (const PointResult& result : results.points) numbers.push_back(result.status.number);
  EXPECT_THAT(numbers, ElementsAre(2, 1, 5, 3, 6, 4)) << "done, not done, and without any result";
  const std::string page = results_page(results, {"t", "", "", {}});
  EXPECT_THAT(page, AllOf(HasSubstr("Best: lr=0.01 flavor=8B"),
                          HasSubstr("Points that skipped steps come after"),
                          HasSubstr("Points that skipped steps have none either.")));
}

TEST_F(Collect, PointsOfWhichAllSkippedStepsAreCompared) {
  point(1, R"({"optimizer.lr": 0.1})", "1", "end 2026-01-01T00:00:01Z 0");
  folder_.file("point-0001/metrics.jsonl", "{\"step\": 1, \"loss\": 4, \"skipped_steps\": 1}\n");
  EXPECT_THAT(results_page(all("loss"), {"t", "", "", {}}),
              AllOf(HasSubstr("Best: lr=0.1"), Not(HasSubstr("have none either"))));
}

TEST_F(Collect, ADamagedMetricsFileIsTheReasonOfItsPointOnly) {
  four();
  folder_.file("point-0001/metrics.jsonl",
               "{\"step\": 1, \"loss\": 2}\nrubbish\n{\"step\": 2, \"loss\": 1}\n");
  const Results results = all("loss");
  EXPECT_EQ(results.points[0].status.number, 2);
  for (const PointResult& result : results.points)
    if (result.status.number == 1) {
      EXPECT_THAT(result.status.reason, HasSubstr("metrics.jsonl:2"));
    }
}

TEST_F(Collect, AFolderInThePlaceOfMetricsEndsNothing) {
  four();
  std::filesystem::create_directories(folder_ / "point-0004/metrics.jsonl");
  EXPECT_EQ(all("loss").points.size(), 4u);
}

TEST_F(Collect, ThePageShowsEveryPoint) {
  four();
  const std::string page = results_page(all("loss"), {"lr <1>", "job = 1", "[job]", {}});
  EXPECT_THAT(
      page,
      AllOf(HasSubstr("lr &lt;1&gt;"), HasSubstr("Heat map"), HasSubstr("Parallel coordinates"),
            HasSubstr("stopped on values that are not finite"), Not(HasSubstr("<script"))));
  EXPECT_THROW(results_page(all(), {"t", "", "", {"optimizer.beta1", "optimizer.lr"}}), Error);
}

TEST_F(Collect, AnUnfinishedPointIsNotTheBestOne) {
  four();
  point(5, R"({"optimizer.lr": 0.5, "model.flavor": "8B"})", "1", "end 2026-01-01T00:00:01Z 137");
  const Results results = all("loss");
  EXPECT_EQ(results.points[0].status.number, 2);
  EXPECT_EQ(results.points[2].status.number, 5) << "first of those that are not done";
  EXPECT_THAT(results_page(results, {"t", "", "", {}}), HasSubstr("Best: lr=0.01 flavor=8B"));
}

TEST_F(Collect, ASweepWithoutAnyResultStillHasItsPage) {
  point(1, R"({"optimizer.lr": 0.1})", "", "");
  EXPECT_THAT(results_page(all(), {"t", "", "", {}}), HasSubstr("missing"));
}

TEST_F(Collect, ManyNumbersAreGroupedInRanges) {
  for (int i = 1; i <= 40; ++i)
    point(i,
          "{\"optimizer.lr\": " + std::to_string(1e-4 * i) +
              ", \"model.flavor\": " + std::to_string(i % 3) + "}",
          "2 1", "end x 0");
  const Results results = all("loss");
  const Groups lr = groups_of(axis_of(results, "optimizer.lr")),
               flavor = groups_of(axis_of(results, "model.flavor"));
  EXPECT_EQ(lr.labels.size(), 8U);
  EXPECT_EQ(flavor.labels.size(), 3U);
  EXPECT_TRUE(axis_of(results, "optimizer.lr").dimension.log);
  for (const int group : lr.of_point) EXPECT_TRUE(group >= 0 && group < 8);
}

}  // namespace
}  // namespace tessera::sweep
