// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/progress.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <sstream>

namespace tessera::metrics {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr Terminal screen{.interactive = true, .color = false, .unicode = false, .columns = 80};
constexpr std::string_view erased = "\r\x1b[2K";

struct ProgressTest : testing::Test {
  double now = 0;
  std::ostringstream out;
  Progress::Clock clock = [this] { return now; };

  std::string taken() {
    std::string text = out.str();
    out.str("");
    return text;
  }
};

TEST_F(ProgressTest, WritesNothingToAFile) {
  {
    Progress progress(out, Terminal{}, "reading", 10, 0, clock);
    for (int i = 0; i <= 10; ++i, now += 1) progress.update(i);
    progress.draw();
    progress.finish();
  }
  EXPECT_EQ(out.str(), "");
}

TEST_F(ProgressTest, ShowsShareSpeedAndEta) {
  Progress progress(out, screen, "reading", 400, 0, clock);
  now = 10;
  progress.update(100);
  const std::string line = taken();
  EXPECT_THAT(line, HasSubstr("reading [#######"));
  EXPECT_THAT(line, HasSubstr(" 25%  100/400  10/s  eta 30s\r"));
  EXPECT_DOUBLE_EQ(progress.eta_seconds(), 30);
}

TEST_F(ProgressTest, DrawsAtMostTenTimesASecond) {
  Progress progress(out, screen, "reading", 400, 0, clock);
  progress.update(1);
  EXPECT_NE(taken(), "");
  now = 0.05;
  progress.update(2);
  EXPECT_EQ(taken(), "");
  now = 0.11;
  progress.update(3);
  EXPECT_THAT(taken(), HasSubstr("3/400"));
}

TEST_F(ProgressTest, AResumedRunHasNoHeadStartInItsSpeed) {
  Progress progress(out, screen, "training", 100, 50, clock);
  EXPECT_TRUE(std::isnan(progress.eta_seconds()));
  now = 10;
  progress.update(60);
  EXPECT_DOUBLE_EQ(progress.eta_seconds(), 40);
  EXPECT_THAT(taken(), HasSubstr(" 60%  60/100  1/s"));
}

TEST_F(ProgressTest, ErasesItselfOnceAtTheEnd) {
  Progress progress(out, screen, "reading", 4, 0, clock);
  progress.update(4);
  taken();
  progress.finish();
  EXPECT_EQ(taken(), erased);
  progress.finish();
  progress.draw();
  EXPECT_EQ(taken(), "");
}

TEST_F(ProgressTest, NeverExceedsTheScreen) {
  for (const int columns : {0, 5, 20, 45, 60, 200}) {
    Terminal narrow = screen;
    narrow.columns = columns;
    Progress progress(out, narrow, "a label of some length", 1'000'000, 0, clock);
    taken();
    progress.draw();
    const std::string line = taken().substr(erased.size());
    EXPECT_LE(static_cast<int>(line.size()) - 1, std::max(0, columns - 1)) << columns;
  }
}

TEST_F(ProgressTest, StaysInItsBounds) {
  Progress progress(out, screen, "reading", 0, 0, clock);  // a total of nothing
  progress.update(7);
  EXPECT_THAT(taken(), HasSubstr("100%"));
}

TEST_F(ProgressTest, PaintsOnlyWhenAsked) {
  Terminal colorful = screen;
  colorful.color = colorful.unicode = true;
  Progress plain(out, screen, "reading", 8, 0, clock);
  plain.update(3);
  EXPECT_THAT(taken(), Not(HasSubstr("\x1b[36m")));
  Progress painted(out, colorful, "reading", 8, 0, clock);
  painted.update(3);
  const std::string line = taken();
  EXPECT_THAT(line, HasSubstr("\x1b[36m━"));
  EXPECT_THAT(line, HasSubstr("\x1b[0m"));
}

TEST(Terminal, APipeIsNoScreen) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Terminal terminal = terminal_of(ends[1], true);
  EXPECT_FALSE(terminal.interactive);
  EXPECT_FALSE(terminal.color);
  EXPECT_EQ(terminal.columns, 80);
  ::close(ends[0]);
  ::close(ends[1]);
}

void expect_pseudo_terminal() {
  const int descriptor = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(descriptor, 0);
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(terminal_of(descriptor, true).interactive);
  EXPECT_TRUE(terminal_of(descriptor, true).color);
  EXPECT_FALSE(terminal_of(descriptor, false).color);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(terminal_of(descriptor, true).color);
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminal_of(descriptor, true).interactive);
  ::close(descriptor);
}

/// Registered where the machine has pseudo-terminals; a bare chroot has none.
class APseudoTerminalIsOne final : public testing::Test {
  void TestBody() override { expect_pseudo_terminal(); }
};
const auto* const kRegistered =
    ::access("/dev/ptmx", R_OK | W_OK) == 0
        ? testing::RegisterTest("Terminal", "APseudoTerminalIsOne", nullptr, nullptr, __FILE__,
                                __LINE__,
                                []() -> testing::Test* { return new APseudoTerminalIsOne; })
        : nullptr;

}  // namespace
}  // namespace tessera::metrics
