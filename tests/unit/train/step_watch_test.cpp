// SPDX-License-Identifier: Apache-2.0
#include "step_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tessera::train {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> lines_of(std::chrono::milliseconds interval,
                                  const std::function<void(StepWatch&)>& steps) {
  std::vector<std::string> lines;
  {
    StepWatch watch([] { return "reading data"; },
                    [&](const std::string& line) { lines.push_back(line); }, interval);
    steps(watch);
  }
  return lines;
}

TEST(StepWatch, SaysWhereALongStepIs) {
  const auto lines = lines_of(50ms, [](StepWatch& watch) {
    watch.begin(7);
    std::this_thread::sleep_for(800ms);
  });
  ASSERT_GE(lines.size(), 2U);
  EXPECT_THAT(lines.front(),
              testing::MatchesRegex("step 7 has been running for 0.[0-9]+s: reading data"));
}

TEST(StepWatch, ShortStepsAreSilent) {
  EXPECT_THAT(lines_of(1500ms,
                       [](StepWatch& watch) {
                         for (int step = 1; step < 20; ++step) {
                           watch.begin(step);
                           std::this_thread::sleep_for(100ms);
                         }
                       }),
              testing::IsEmpty());
}

TEST(StepWatch, IsSilentBeforeTheFirstStep) {
  EXPECT_THAT(lines_of(50ms, [](StepWatch&) { std::this_thread::sleep_for(250ms); }),
              testing::IsEmpty());
}

}  // namespace
}  // namespace tessera::train
