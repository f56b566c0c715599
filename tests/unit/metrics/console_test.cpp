// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace tessera::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

StepRecord record(std::int64_t step) {
  return {.step = step,
          .loss = 8.103424,
          .grad_norm = 1.2345,
          .lr = 2e-3,
          .tokens = 4096,
          .step_seconds = 0.09,
          .tokens_per_second = 45'600,
          .tps = 5'700,
          .mfu = 0.123,
          .memory_bytes = 1'320'702'444,
          .extra = {}};
}

constexpr LineStyle plain(std::int64_t last_step) { return {.last_step = last_step}; }

TEST(StepLine, SaysAllOfItWhereThereIsRoom) {
  EXPECT_EQ(step_line(record(7), 7380, {.last_step = 100, .devices = 8, .columns = 130}),
            "step   7/100  loss  8.10342  grad_norm  1.2345  lr 2.00e-03  45.6k tok/s  5.70k "
            "tok/s/device  mfu 12.3% "
            " mem 1.23 GiB  eta 2h03m");
  EXPECT_EQ(step_line(record(7), 7380, plain(100)),
            "step   7/100  loss  8.10342  grad_norm  1.2345  lr 2.00e-03  45.6k tok/s  mfu 12.3%  "
            "eta 2h03m");
}

TEST(StepLine, OneDeviceHasNoSpeedOfItsOwn) {
  EXPECT_THAT(step_line(record(7), 7380, {.last_step = 100, .devices = 1, .columns = 200}),
              Not(HasSubstr("device")));
  EXPECT_THAT(step_line(record(7), 7380, {.last_step = 100, .devices = 2, .columns = 200}),
              HasSubstr("device"));
}

TEST(StepLine, FitsTheColumns) {
  for (const int columns : {100, 79, 60, 50})
    for (const std::int64_t last : {30, 100, 10'000, 100'000})
      for (const bool color : {false, true}) {
        const LineStyle style{.last_step = last, .devices = 8, .columns = columns, .color = color};
        std::string line = step_line(record(7), 7380, style);
        for (auto at = line.find('\x1b'); at != line.npos; at = line.find('\x1b'))
          line.erase(at, line.find('m', at) - at + 1);
        EXPECT_LE(static_cast<int>(line.size()), columns) << line;
        EXPECT_THAT(line, HasSubstr("loss  8.10342"));
      }
}

TEST(StepLine, KeepsItsColumns) {
  StepRecord other = record(100);
  other.loss = 11.5;
  other.grad_norm = 123.25;
  other.tps = 71;
  other.tokens_per_second = 568;
  other.mfu = not_a_number;
  other.memory_bytes = 900 << 20;
  const std::string a = step_line(record(7), 0, plain(100));
  const std::string b = step_line(other, 0, plain(100));
  for (const char* word : {"loss", "grad_norm", "lr", "tok/s", "mfu", "eta"})
    EXPECT_EQ(a.find(word), b.find(word)) << b;
}

TEST(StepLine, ShowsWhatIsNotFiniteAndWhatIsHuge) {
  StepRecord broken = record(1);
  broken.loss = not_a_number;
  broken.grad_norm = 1e30;
  const std::string line = step_line(broken, not_a_number, plain(1));
  EXPECT_THAT(line, HasSubstr("loss      nan"));
  EXPECT_THAT(line, HasSubstr("grad_norm 1.0e+30"));
  EXPECT_THAT(line, HasSubstr("eta -"));
}

TEST(StepLine, IsTheSameTextUnderItsPaint) {
  LineStyle style = plain(100);
  style.color = true;
  const std::string painted = step_line(record(7), 7380, style);
  std::string stripped;
  for (std::size_t i = 0; i < painted.size(); ++i) {
    if (painted[i] == '\x1b')
      i = painted.find('m', i);
    else
      stripped += painted[i];
  }
  EXPECT_NE(painted, stripped);
  EXPECT_EQ(stripped, step_line(record(7), 7380, plain(100)));
}

TEST(Console, NamesThePeakOnceAndWritesPlainLinesToAFile) {
  std::ostringstream out;
  {
    Console console(out, Terminal{}, 1, 3, {504e9, "estimate: 2 cores"});
    console.step(record(1), 2);
    console.step(record(2), 1, false);
    console.note("saved step 2");
    console.step(record(3), 0);
  }
  EXPECT_EQ(out.str(),
            "MFU peak: 504 GFLOP/s a device (estimate: 2 cores)\n"
            "memory of the largest rank after this step: 1.23 GiB\n" +
                step_line(record(1), 2, plain(3)) + "\nsaved step 2\n" +
                step_line(record(3), 0, plain(3)) + "\n");
}

TEST(Console, SaysWhyThereIsNoMfu) {
  std::ostringstream out;
  Console console(out, Terminal{}, 1, 3, {0, "no peak is known for f32 on this processor"});
  console.step(record(1), 2);
  EXPECT_THAT(out.str(),
              StartsWith("MFU is not known: no peak is known for f32 on this processor\n"));
}

TEST(Console, OnAScreenLinesStandAboveTheBar) {
  std::ostringstream out;
  {
    Console console(out, {.interactive = true, .color = false, .unicode = false, .columns = 80}, 1,
                    3, {});
    console.step(record(1), 2);
  }
  const std::string text = out.str();
  const auto line = text.find("step 1/3");
  EXPECT_EQ(text.substr(line - 5, 5), "\r\x1b[2K") << "the bar was erased first";
  EXPECT_THAT(text.substr(line), HasSubstr("\n\r\x1b[2Ktraining ["));
  EXPECT_THAT(text, testing::EndsWith("\r\r\x1b[2K")) << "and nothing of it is left";
}

}  // namespace
}  // namespace tessera::metrics
