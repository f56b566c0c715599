// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/jsonl_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::metrics {
namespace {

using tessera::test::content_of;
using tessera::test::error_of;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

const bool quiet = (log::configure(log::Level::error, ""), true);

StepRecord written_record(std::int64_t step) {
  StepRecord r;
  r.step = step;
  r.loss = 8.1 / static_cast<double>(step);
  r.grad_norm = 0.1 + static_cast<double>(step);
  r.lr = 2e-3;
  r.tokens = 4096;
  r.step_seconds = 1.0 / 3;
  r.tokens_per_second = 12288;
  r.tps = 1536;
  r.mfu = 0.41;
  r.memory_bytes = 5'000'000'000;
  return r;
}

std::vector<std::int64_t> steps_in(const std::filesystem::path& file) {
  std::vector<std::int64_t> steps;
  for (const StepRecord& r : read_records(file)) steps.push_back(r.step);
  return steps;
}

void write_steps(const std::filesystem::path& file, std::int64_t resume_step,
                 std::int64_t last_step) {
  JsonlSink sink(file, resume_step);
  for (std::int64_t step = resume_step + 1; step <= last_step; ++step)
    sink.write(written_record(step));
}

using Steps = std::vector<std::int64_t>;

TEST(JsonLine, HasTheFixedKeysInOrder) {
  StepRecord r = written_record(3);
  r.extra = {{"time/forward", 0.25}};
  EXPECT_EQ(
      to_json_line(r),
      R"({"step": 3, "loss": 2.6999999999999997, "grad_norm": 3.1000000000000001, "lr": 0.002, "tokens": 4096, )"
      R"("step_seconds": 0.33333333333333331, "tokens_per_second": 12288, "tps": 1536, "mfu": 0.40999999999999998, )"
      R"("memory_bytes": 5000000000, "time/forward": 0.25})");
}

TEST(JsonLine, NonFiniteIsNullAndNamesAreQuoted) {
  StepRecord r = written_record(1);
  r.loss = std::numeric_limits<double>::quiet_NaN();
  r.grad_norm = std::numeric_limits<double>::infinity();
  r.extra = {{"a \"b\"\n\xff", -std::numeric_limits<double>::infinity()}};
  const auto object = nlohmann::json::parse(to_json_line(r));
  EXPECT_TRUE(object["loss"].is_null());
  EXPECT_TRUE(object["grad_norm"].is_null());
  EXPECT_EQ(to_json_line(r).find('\n'), std::string::npos);
}

TEST(JsonLine, EveryDoubleComesBackBitForBit) {
  const TemporaryFolder folder;
  const double values[] = {
      0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 6.02214076e23, std::nextafter(1.0, 2.0)};
  std::int64_t step = 0;
  {
    JsonlSink sink(folder / "metrics.jsonl", 0);
    for (const double value : values) {
      StepRecord r = written_record(++step);
      r.loss = value;
      r.extra = {{"x", value}};
      sink.write(r);
    }
  }
  const auto records = read_records(folder / "metrics.jsonl");
  ASSERT_EQ(records.size(), std::size(values));
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(std::memcmp(&records[i].loss, &values[i], sizeof(double)), 0) << values[i];
    ASSERT_EQ(records[i].extra.size(), 1U);
    EXPECT_EQ(std::memcmp(&records[i].extra[0].second, &values[i], sizeof(double)), 0) << values[i];
  }
}

TEST(JsonlSink, EachLineIsThereAtOnce) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  JsonlSink sink(file, 0);
  for (std::int64_t step = 1; step <= 3; ++step) {
    sink.write(written_record(step));
    EXPECT_EQ(static_cast<std::int64_t>(steps_in(file).size()), step);
  }
  EXPECT_EQ(sink.last_step(), 3);
  EXPECT_THROW(sink.write(written_record(3)), ContractViolation);
}

TEST(JsonlSink, ResumeDropsLaterSteps) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  write_steps(file, 0, 9);
  const std::string first_five = content_of(file).substr(0, content_of(file).find("{\"step\": 6"));
  {
    JsonlSink sink(file, 5);
    EXPECT_EQ(sink.last_step(), 5);
    EXPECT_EQ(content_of(file), first_five) << "the lines that stay are untouched";
    sink.write(written_record(6));
  }
  EXPECT_EQ(steps_in(file), (Steps{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(folder.entries(), 1U) << "nothing left beside it";
  write_steps(file, 0, 2);
  EXPECT_EQ(steps_in(file), (Steps{1, 2})) << "a run from the beginning starts a new file";
}

TEST(JsonlSink, SurvivesAKillAnywhereInTheLastLine) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  write_steps(file, 0, 3);
  const std::string whole = content_of(file);
  const std::size_t third = whole.find("{\"step\": 3");
  for (std::size_t size = third; size <= whole.size(); size += size + 8 < whole.size() ? 7 : 1) {
    put(file, whole.substr(0, size));
    EXPECT_GE(read_records(file).size(), 2U) << "the reader passes over a torn line";
    const bool torn = size < whole.size() - 1;
    const std::int64_t last = torn ? 2 : 3;
    {
      JsonlSink sink(file, 3);
      EXPECT_EQ(sink.last_step(), last) << size - third << " bytes of the last line";
      sink.write(written_record(4));
    }
    EXPECT_EQ(steps_in(file), (torn ? Steps{1, 2, 4} : Steps{1, 2, 3, 4}));
  }
}

TEST(JsonlSink, DropsRepeatsAndRubbish) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  const std::string one = to_json_line(written_record(1)) + '\n',
                    two = to_json_line(written_record(2)) + '\n';
  using namespace std::string_literals;
  put(file, one + two + one + "\n[]\n{\"step\": -4}\n{\"step\": \"x\"}\n{}\n"s + "\0\0\0\n"s + two +
                to_json_line(written_record(3)) + '\n');
  { JsonlSink sink(file, 10); }
  EXPECT_EQ(steps_in(file), (Steps{1, 2, 3}));
}

TEST(JsonlSink, KilledInTheMiddleOfWritingItGoesOn) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    JsonlSink sink(file, 0);
    for (std::int64_t step = 1;; ++step) sink.write(written_record(step));
  }
  while (!std::filesystem::exists(file) || std::filesystem::file_size(file) < 100'000)
    ::usleep(1000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto before = read_records(file);
  ASSERT_GT(before.size(), 100U);
  const std::int64_t resume = before.back().step - 7;
  write_steps(file, resume, resume + 2);
  const Steps steps = steps_in(file);
  ASSERT_EQ(static_cast<std::int64_t>(steps.size()), resume + 2);
  for (std::size_t i = 0; i < steps.size(); ++i)
    ASSERT_EQ(steps[i], static_cast<std::int64_t>(i) + 1);
}

/// Lets this process write at most that many bytes to any file, as a full disk does: the write that
/// exceeds it is cut short.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST(JsonlSink, AFullDiskIsOneErrorAndLeavesWholeLines) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  JsonlSink sink(file, 0);
  sink.write(written_record(1));
  sink.write(written_record(2));
  const std::string before = content_of(file);
  std::string message;
  {
    const FileSizeLimit limit(before.size() + 40);
    try {
      sink.write(written_record(3));
    } catch (const Error& error) {
      message = error.what();
      EXPECT_EQ(error.code(), ExitCode::environment);
    }
  }
  EXPECT_THAT(message, HasSubstr("cannot write '" + file.string() + "' ("));
  EXPECT_THAT(message, HasSubstr("free some space"));
  EXPECT_EQ(content_of(file), before) << "the part of the line that fitted is taken back";
  sink.write(written_record(3));
  EXPECT_EQ(steps_in(file), (Steps{1, 2, 3}))
      << "and the step can be written again once there is room";
}

TEST(JsonlSink, AFullDiskOnResumeKeepsTheOldFile) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  write_steps(file, 0, 5);
  const std::string before = content_of(file);
  {
    const FileSizeLimit limit(100);
    EXPECT_THROW(JsonlSink(file, 3), Error);
  }
  EXPECT_EQ(content_of(file), before);
}

TEST(JsonlSink, NamesAFileThatCannotBeMade) {
  const std::string error =
      error_of(ExitCode::environment, [&] { JsonlSink sink("/proc/no/metrics.jsonl", 0); });
  EXPECT_THAT(error, HasSubstr("/proc/no/metrics.jsonl"));
}

TEST(ReadRecords, NamesTheLineThatIsNoRecord) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  put(file,
      to_json_line(written_record(1)) + "\nnonsense\n" + to_json_line(written_record(2)) + "\n");
  const std::string error = error_of(ExitCode::data, [&] { read_records(file); });
  EXPECT_THAT(error, HasSubstr("metrics.jsonl:2"));
  EXPECT_THROW(read_records(folder / "nothing"), Error);
}

TEST(ReadRecords, NullIsNanAndOtherKeysAreKept) {
  const TemporaryFolder folder;
  const auto file = folder / "metrics.jsonl";
  put(file, "{\"step\": 1, \"loss\": null, \"note\": \"text\", \"b\": 2, \"a\": null}\n");
  const auto records = read_records(file);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(std::isnan(records[0].loss));
  ASSERT_EQ(records[0].extra.size(), 2U);
  EXPECT_EQ(records[0].extra[0], (std::pair<std::string, double>{"b", 2}));
  EXPECT_TRUE(std::isnan(records[0].extra[1].second));
}

}  // namespace
}  // namespace tessera::metrics
