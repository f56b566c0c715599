// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/run_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"

namespace tessera::metrics {
namespace {

using tessera::test::content_of;
using tessera::test::error_of;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using testing::MatchesRegex;

Attempt attempt(std::int64_t first_step) {
  return {.id = make_attempt_id(),
          .started = "",
          .first_step = first_step,
          .ranks = 8,
          .mesh = "pp=2 dp_shard=2 tp=2",
          .hosts = {"node1", "node2"},
          .command_line = {"tessera", "train", "a b.toml", "\xff"},
          .versions = {{"tessera", "0.1.0"}, {"mpi", "Open MPI 4.1.4"}}};
}

std::string message_of(const std::filesystem::path& folder) {
  return error_of(ExitCode::environment, [&] { RunFolder run(folder); });
}

TEST(RunFolder, IsMadeWithWhatIsAboveItAndLeftEmpty) {
  const TemporaryFolder scratch;
  const RunFolder run(scratch / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_empty(run.path()));
  EXPECT_NO_THROW(RunFolder(scratch / "a/b/c")) << "a folder that is there is fine";
}

TEST(RunFolder, OneClearErrorWhereItCannotBe) {
  const TemporaryFolder scratch;
  put(scratch / "file", "x");
  EXPECT_THAT(message_of(scratch / "file"),
              HasSubstr("cannot create the run's folder " + (scratch / "file").string()));
  EXPECT_THAT(message_of(scratch / "file/run"),
              HasSubstr("(Not a directory); choose another job.dump_folder"));
  EXPECT_THAT(message_of("/proc/self/fdinfo"), HasSubstr("cannot create '/proc/self/fdinfo/"));
}

TEST(RunFolder, ConfigIsThatOfTheNewestAttempt) {
  const TemporaryFolder scratch;
  const RunFolder run(scratch / "run");
  run.write_config("[job]\n");
  run.write_config("[job]\nx = 1\n");
  EXPECT_EQ(content_of(scratch / "run/config.toml"), "[job]\nx = 1\n");
}

TEST(RunFolder, AttemptsAddUp) {
  const TemporaryFolder scratch;
  const RunFolder run(scratch / "run");
  run.add_attempt(attempt(1));
  run.add_attempt(attempt(51));
  const auto json = nlohmann::json::parse(content_of(scratch / "run/run.json"));
  EXPECT_EQ(json["format"], "tessera-run 1");
  ASSERT_EQ(json["attempts"].size(), 2U);
  const auto& second = json["attempts"][1];
  EXPECT_EQ(second["first_step"], 51);
  EXPECT_EQ(second["hosts"], (nlohmann::json{"node1", "node2"}));
  EXPECT_EQ(second["command_line"][2], "a b.toml");
  EXPECT_EQ(second["versions"]["mpi"], "Open MPI 4.1.4");
  EXPECT_THAT(second["started"].get<std::string>(), MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  EXPECT_NE(json["attempts"][0]["id"], second["id"]);
}

TEST(RunFolder, ADamagedRunJsonIsKeptAsideAndStopsNothing) {
  const TemporaryFolder scratch;
  const RunFolder run(scratch / "run");
  for (const char* damage : {"", "{\"attempts\": [", "[]", "{\"attempts\": 3}"}) {
    put(scratch / "run/run.json", damage);
    run.add_attempt(attempt(1));
    EXPECT_EQ(content_of(scratch / "run/run.json.damaged"), damage);
    EXPECT_EQ(nlohmann::json::parse(content_of(scratch / "run/run.json"))["attempts"].size(), 1U);
  }
}

TEST(RunFolder, MetricsOfARunThatStartsAnewAreKept) {
  const TemporaryFolder scratch;
  const RunFolder run(scratch / "run");
  EXPECT_EQ(run.set_metrics_aside(), "") << "there are none";
  put(run.metrics_file(), "");
  EXPECT_EQ(run.set_metrics_aside(), "") << "they hold nothing";
  for (const char* name : {"run/metrics.1.jsonl", "run/metrics.2.jsonl"}) {
    put(run.metrics_file(), name);
    EXPECT_EQ(run.set_metrics_aside(), scratch / name);
    EXPECT_EQ(content_of(scratch / name), name);
    EXPECT_FALSE(std::filesystem::exists(run.metrics_file()));
  }
}

TEST(AttemptId, IsATimeAndIsUnique) {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(make_attempt_id());
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_THAT(*ids.begin(), MatchesRegex("20[0-9]+T[0-9]+Z-[0-9a-f]+"));
  EXPECT_EQ(ids.begin()->size(), 25U);
}

}  // namespace
}  // namespace tessera::metrics
