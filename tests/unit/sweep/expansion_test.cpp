// SPDX-License-Identifier: Apache-2.0
// What the points of a sweep are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "reading.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "sweep_files.hpp"
#include "tessera/base/shell_words.hpp"
#include "tessera/config/resolve.hpp"

namespace tessera::sweep {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using test::sweep_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> described(const Sweep& sweep) {
  std::vector<std::string> lines;
  for (const Point& point : points(sweep))
    lines.push_back(std::to_string(point.number) + " " + describe(point.settings));
  return lines;
}

TEST(Expansion, GridVariesItsLastKeyFastest) {
  EXPECT_THAT(
      described(sweep_of("[grid]\ntraining.steps = [20, 10]\noptimizer.lr = [1e-3, 0.5]\n")),
      ElementsAre("1 training.steps=20 optimizer.lr=0.001", "2 training.steps=20 optimizer.lr=0.5",
                  "3 training.steps=10 optimizer.lr=0.001",
                  "4 training.steps=10 optimizer.lr=0.5"));
}

TEST(Expansion, TakesQuotedKeysSectionsAndOtherSpellings) {
  const auto same = described(sweep_of("[grid]\noptimizer.lr = [1, 2]\n"));
  EXPECT_EQ(described(sweep_of("[grid]\n\"optimizer.lr\" = [1, 2]\n")), same);
  EXPECT_EQ(described(sweep_of("[grid.optimizer]\nlr = [1, 2]\n")), same);
}

TEST(Expansion, ZipGoesThroughItsKeysTogether) {
  EXPECT_THAT(described(sweep_of(
                  "[zip]\noptimizer.lr = [1e-3, 2e-3]\nlr_scheduler.warmup_steps = [5, 5]\n")),
              ElementsAre("1 optimizer.lr=0.001 lr_scheduler.warmup_steps=5",
                          "2 optimizer.lr=0.002 lr_scheduler.warmup_steps=5"));
}

TEST(Expansion, ListEntriesMayHaveOtherKeys) {
  EXPECT_THAT(
      described(sweep_of(
          "[[list]]\noptimizer.lr = 0.5\n[[list]]\ntraining.steps = 7\noptimizer.lr = 0.25\n")),
      ElementsAre("1 optimizer.lr=0.5", "2 training.steps=7 optimizer.lr=0.25"));
}

TEST(Expansion, RangesHaveTheirEndsAndRoundedValuesBetween) {
  EXPECT_THAT(
      described(sweep_of("[grid]\noptimizer.lr = { log = [1e-4, 1e-2], count = 5 }\n")),
      ElementsAre("1 optimizer.lr=0.0001", "2 optimizer.lr=0.000316228", "3 optimizer.lr=0.001",
                  "4 optimizer.lr=0.00316228", "5 optimizer.lr=0.01"));
  EXPECT_THAT(described(sweep_of("[grid]\ntraining.steps = { linear = [10, 20], count = 3 }\n")),
              ElementsAre("1 training.steps=10", "2 training.steps=15", "3 training.steps=20"));
}

TEST(Expansion, RandomDrawsAreOfTheirRangeAndKeyedBySeedAndNumber) {
  const std::string keys =
      "optimizer.lr = { log = [1e-4, 1e-2] }\nlr_scheduler.warmup_steps = { linear = [0, 9] }\n"
      "model.flavor = [\"8B\", \"70B\"]\n";
  const Sweep few = sweep_of("[random]\nseed = 1\ncount = 3\n" + keys),
              many = sweep_of("[random]\nseed = 1\ncount = 300\n" + keys);
  const Sweep other = sweep_of("[random]\nseed = 20261129\ncount = 3\n" + keys);
  const auto three = described(few), all = described(many);
  EXPECT_EQ(three, std::vector(all.begin(), all.begin() + 3)) << "more draws change the first ones";
  EXPECT_NE(three, described(other));
  int small = 0, first_flavor = 0;
  for (const Point& point : points(many)) {
    const double lr = std::get<double>(point.settings[0].value);
    EXPECT_GE(lr, 1e-4);
    EXPECT_LE(lr, 1e-2);
    small += lr < 1e-3;
    first_flavor += std::get<std::string>(point.settings[2].value) == "8B";
  }
  EXPECT_NEAR(small, 150, 40) << "a log range has as many below its geometric mean as above";
  EXPECT_NEAR(first_flavor, 150, 40);
  EXPECT_EQ(random_bits(1, 2, "optimizer.lr"), random_bits(1, 2, "optimizer.lr"));
}

TEST(Expansion, BlocksAreMultipliedAndExclusionsKeepTheOtherNumbers) {
  const Sweep sweep = sweep_of(
      "[grid]\ntraining.steps = [10, 20]\n[zip]\nvalidation.freq = [1, 2]\ncheckpoint.interval = "
      "[3, 4]\n"
      "[random]\nseed = 4\ncount = 2\noptimizer.lr = { linear = [0.0, 1.0] }\n"
      "[[exclude]]\ntraining.steps = 20\nvalidation.freq = [2]\n");
  EXPECT_EQ(numbers(sweep), 8);
  std::vector<int> left;
  for (const Point& point : points(sweep)) left.push_back(point.number);
  EXPECT_THAT(left, ElementsAre(1, 2, 3, 5, 6, 7));
  EXPECT_FALSE(point_of(sweep, 4));
  EXPECT_FALSE(point_of(sweep, 0));
  EXPECT_FALSE(point_of(sweep, 9));
  EXPECT_EQ(describe(point_of(sweep, 7)->settings), describe(points(sweep)[5].settings));
}

TEST(Expansion, FlagsReadBackAsTheSameJob) {
  const Sweep sweep = sweep_of(
      "folder = \"out\"\n[set]\ntraining.seq_len = 64\n[grid]\nmodel.converters = [[], [\"a\", "
      "\"b\"]]\n"
      "job.description = [\"it's one\"]\ncomm.train_timeout_seconds = [7]\n");
  const Point point = *point_of(sweep, 2);
  const std::vector<std::string> words = train_arguments(sweep, point);
  EXPECT_EQ(words.back(), "--job.dump_folder=out/point-0002");
  const auto job = config::resolve({words.begin() + 1, words.end()}).job;
  EXPECT_EQ(job.training.seq_len, 64);
  EXPECT_THAT(job.model.converters, ElementsAre("a", "b"));
  EXPECT_EQ(job.job.description, "it's one");
  EXPECT_THAT(shell_words({"a b", "it's", "plain=1"}), testing::StrEq("'a b' 'it'\\''s' plain=1"));
}

TEST(Expansion, TellsPointsAndRankHoursFirst) {
  const Sweep sweep = sweep_of(
      "ranks = 4\ntime = \"01:30:00\"\n[grid]\noptimizer.lr = [1, 2]\ndebug.seed = [1, 2]\n"
      "[[exclude]]\noptimizer.lr = 2\ndebug.seed = 2\n");
  const std::string text = overview(sweep, points(sweep).size());
  EXPECT_THAT(text, HasSubstr("3 points = 2 x 2, without 1 excluded"));
  EXPECT_THAT(text, HasSubstr("4 ranks a point, at most 01:30:00 each: at most 18 rank-hours"));
}

TEST(Expansion, ReadsSlurmsTimes) {
  EXPECT_EQ(seconds_of("90"), 5400);
  EXPECT_EQ(seconds_of("02:30"), 150);
  EXPECT_EQ(seconds_of("1-06"), 108000);
  EXPECT_EQ(seconds_of("1-00:00:01"), 86401);
  for (const char* wrong : {"", "0", "x", "1:2:3:4", "-1", "1-", "1:", "00:00:00"})
    EXPECT_FALSE(seconds_of(wrong)) << wrong;
  EXPECT_EQ(time_text(93784), "1-02:03:04");
}

TEST(Expansion, AThousandPointsAreCheckedInASecond) {
  const TemporaryFolder folder;
  folder.file("base.toml", "[model]\nname = \"llama3\"\n[training]\ndataset_path = \"x\"\n");
  const std::string file = folder.file(
      "s.toml",
      "job = \"base.toml\"\n[grid]\noptimizer.lr = { log = [1e-5, 1e-2], count = 100 }\n"
      "debug.seed = { linear = [1, 10], count = 10 }\n");
  const auto began = std::chrono::steady_clock::now();
  const Sweep sweep = read_sweep(file);
  const std::vector<Point> all = points(sweep);
  check_points(sweep, all, [](const auto& words) {
    return config::resolve(words).warnings.empty() ? "" : "warned";
  });
  const std::string text = table(all);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  EXPECT_EQ(all.size(), 1000U);
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 5) << "one second is wanted; five leave room for a busy machine";
}

TEST(Expansion, RefusesPointsAsTheirJobIsRefusedAndTellsEachProblemOnce) {
  const Sweep sweep = sweep_of("[grid]\ntraining.steps = [1, 2, 3]\n");
  const std::string error = error_of(ExitCode::usage, [&] {
    check_points(sweep, points(sweep), [](const auto& words) {
      return words[1] == "--training.steps=2" ? "" : "this is wrong\nand that";
    });
  });
  EXPECT_THAT(error, HasSubstr("2 of 3 points"));
  EXPECT_THAT(error,
              HasSubstr("points 1, 3, first training.steps=1:\n    this is wrong\n    and that"));
}

}  // namespace
}  // namespace tessera::sweep
