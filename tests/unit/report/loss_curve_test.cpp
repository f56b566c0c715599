// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/loss_curve.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "well_formed.hpp"

namespace tessera::report {
namespace {

using metrics::JsonlSink;
using metrics::StepRecord;
using tessera::test::content_of;
using tessera::test::TemporaryFolder;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::vector<StepRecord> falling_loss(std::int64_t steps) {
  std::vector<StepRecord> records(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    StepRecord& r = records[static_cast<std::size_t>(i)];
    r.step = i + 1;
    r.loss = 4.3 + 3.8 * std::exp(-10.0 * static_cast<double>(i) / static_cast<double>(steps)) +
             0.1 * std::sin(static_cast<double>(7 * i));
    r.lr = 2e-3 * std::min(1.0, static_cast<double>(i + 1) / 20);
  }
  return records;
}

TEST(LossCurve, HoldsCurvesAxesTitleAndBothSchemes) {
  const std::string svg =
      loss_curve_svg(falling_loss(100), {.title = "debug <1>", .subtitle = "2 × 2 × 2"});
  EXPECT_TRUE(well_formed(svg));
  EXPECT_TRUE(has(svg, "debug &lt;1&gt;"));
  EXPECT_TRUE(has(svg, "2 × 2 × 2"));
  EXPECT_TRUE(has(svg, "prefers-color-scheme:dark"));
  for (const char* name : {"\"raw\"", "\"mean\"", "\"edge\"", "\"rate\"", "\"grid\"", "\"dot\""})
    EXPECT_TRUE(has(svg, name));
  EXPECT_TRUE(has(svg, ">100</text>"));
  EXPECT_FALSE(has(svg, "nan"));
}

TEST(LossCurve, LearningRateCanBeLeftOut) {
  const std::string svg =
      loss_curve_svg(falling_loss(100), {.title = "t", .subtitle = "", .learning_rate = false});
  EXPECT_FALSE(has(svg, "<path class=\"edge\""));
}

TEST(LossCurve, StaysSmallForLongRuns) {
  const std::string svg = loss_curve_svg(falling_loss(200'000));
  EXPECT_LT(svg.size(), 100'000U);
  EXPECT_TRUE(well_formed(svg));
}

TEST(LossCurve, DrawsWhatLittleThereIs) {
  EXPECT_TRUE(has(loss_curve_svg({}), "no steps yet"));
  auto one = falling_loss(1);
  EXPECT_TRUE(well_formed(loss_curve_svg(one)));
  one[0].loss = not_a_number;
  one[0].lr = not_a_number;
  EXPECT_TRUE(has(loss_curve_svg(one), "no finite loss"));
}

TEST(LossCurve, GapsAndSpikesDoNotSpoilIt) {
  auto records = falling_loss(1000);
  records[300].loss = 1e29;
  records[301].loss = 1.7e308;
  records[302].loss = -1.7e308;
  records[500].loss = not_a_number;
  records[501].loss = std::numeric_limits<double>::infinity();
  records[502].lr = not_a_number;
  const std::string svg = loss_curve_svg(records);
  EXPECT_TRUE(well_formed(svg));
  EXPECT_FALSE(has(svg, "nan"));
  EXPECT_FALSE(has(svg, "inf"));
  EXPECT_TRUE(has(svg, ">8</text>")) << "the scale is still that of the curve";
}

TEST(LossCurve, ASpikeInAShortRunDoesNotFlattenIt) {
  auto records = falling_loss(40);
  records[30].loss = 1e6;
  EXPECT_TRUE(has(loss_curve_svg(records), ">8</text>"));
}

TEST(LossCurve, IsWrittenFromTheRunsMetrics) {
  const TemporaryFolder folder;
  const auto records = falling_loss(50);
  {
    JsonlSink sink(folder / "metrics.jsonl", 0);
    for (const StepRecord& r : records) sink.write(r);
  }
  write_loss_curve(folder / "loss.svg", folder / "metrics.jsonl");
  EXPECT_TRUE(content_of(folder / "loss.svg") == loss_curve_svg(records));
  EXPECT_EQ(folder.entries(), 2U);
  EXPECT_THROW(write_loss_curve("/proc/no/loss.svg", records), Error);
}

StepRecord at(std::int64_t step, double loss) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  return record;
}

TEST(LossCurve, CurvesOfNumbersThatDoublesCannotTellApartEnd) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const auto& records : {std::vector{at(last, 1)}, std::vector{at(last - 1, 1), at(last, 2)},
                              std::vector{at(last, 1), at(1, 2)},
                              std::vector{at(1, 1e29), at(2, std::nextafter(1e29, 2e29))},
                              std::vector{at(1, -1e29), at(2, 1e29)},
                              std::vector{at(1, 1), at(2, std::nextafter(1.0, 2.0))},
                              std::vector{at(1, 5e-324), at(2, 0)}})
    EXPECT_LT(loss_curve_svg(records).size(), 20'000u);
}

}  // namespace
}  // namespace tessera::report
