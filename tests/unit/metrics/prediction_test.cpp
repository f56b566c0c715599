// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/prediction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Prediction, StandsBesideWhatWasMeasured) {
  const RunFigures predicted{0.25, 64 << 20, {{"forward", 0.08}, {"waiting in tp", 0.02}}},
      measured{
          0.2, 80 << 20, {{"forward", 0.05}, {"waiting in tp", 0.03}, {"waiting in pp", 0.01}}};
  EXPECT_EQ(predicted_and_measured(predicted, measured, "2 cores of X"),
            "  predicted for 2 cores of X, and measured:\n"
            "    step               250 ms      200 ms    +25 %\n"
            "    memory           64.0 MiB    80.0 MiB    -20 %\n"
            "    waiting             20 ms       40 ms    -50 %\n"
            "    off most: forward, 80 ms of a step predicted, 50 ms measured\n");
}

TEST(Prediction, APartThatOneOfThemLacksIsOffToo) {
  EXPECT_THAT(predicted_and_measured({1, 0, {{"forward", 1}}},
                                     {1, 0, {{"forward", 0.9}, {"waiting in pp", 0.3}}}, "X"),
              HasSubstr("off most: waiting in pp, 0 ms of a step predicted, 300 ms measured\n"));
}

TEST(Prediction, SaysNothingOfMemoryThatIsNotKnown) {
  EXPECT_THAT(predicted_and_measured({1, 5, {}}, {1, 0, {}}, "X"), Not(HasSubstr("memory")));
}

}  // namespace
}  // namespace tessera::metrics
