#include "tessera/metrics/loss_curve.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "scratch_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/metrics/jsonl_sink.hpp"

namespace tessera::metrics {
namespace {

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

/// Not gmock's HasSubstr, which prints the whole picture when it fails.
bool has(std::string_view svg, std::string_view text) { return svg.find(text) != svg.npos; }

/// Every tag is closed in its order, and no attribute holds a raw '<': enough of XML to catch a slip of the writer.
bool well_formed(std::string_view svg) {
  std::vector<std::string> open;
  for (auto at = svg.find('<'); at != svg.npos; at = svg.find('<', at + 1)) {
    const auto end = svg.find('>', at);
    if (end == svg.npos || svg.substr(at + 1, end - at - 1).find('<') != svg.npos) return false;
    const std::string_view tag = svg.substr(at + 1, end - at - 1);
    const std::string name(
        tag.substr(tag.front() == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag.front() == '/' ? 1 : 0)));
    if (tag.front() == '/') {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(WellFormed, SeesMistakes) {
  EXPECT_TRUE(well_formed("<a><b x=\"1\"/><c>t</c></a>"));
  EXPECT_FALSE(well_formed("<a><b></a>"));
  EXPECT_FALSE(well_formed("<a x=\"<\"/>"));
}

TEST(LossCurve, HoldsCurvesAxesTitleAndBothSchemes) {
  const std::string svg = loss_curve_svg(falling_loss(100), {.title = "debug <1>", .subtitle = "2 × 2 × 2"});
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
  const std::string svg = loss_curve_svg(falling_loss(100), {.title = "t", .subtitle = "", .learning_rate = false});
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
  const test::ScratchFolder folder;
  const auto records = falling_loss(50);
  {
    JsonlSink sink(folder / "metrics.jsonl", 0);
    for (const StepRecord& r : records) sink.write(r);
  }
  write_loss_curve(folder / "loss.svg", folder / "metrics.jsonl");
  EXPECT_TRUE(test::contents(folder / "loss.svg") == loss_curve_svg(records));
  EXPECT_EQ(folder.entries(), 2U);
  EXPECT_THROW(write_loss_curve("/proc/no/loss.svg", records), Error);
}

}  // namespace
}  // namespace tessera::metrics
