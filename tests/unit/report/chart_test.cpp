// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/chart.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/base/error.hpp"
#include "well_formed.hpp"

namespace tessera::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Series falling(std::string name, int steps, double by = 1) {
  Series series{std::move(name), {}};
  for (int i = 1; i <= steps; ++i)
    series.points.push_back({static_cast<double>(i), 4 + by * std::exp(-10.0 * i / steps)});
  return series;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ShortNumber, HasFourDigits) {
  EXPECT_EQ(short_number(4.31234), "4.312");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(3e-4), "3e-4");
  EXPECT_EQ(short_number(-2.5e-6), "-2.5e-6");
  EXPECT_EQ(short_number(12346), "12.35k");
  EXPECT_EQ(short_number(1e30), "1e30");
  EXPECT_EQ(short_number(kNone), "-");
}

TEST(LineChart, ShowsEachSeriesWithItsLastValue) {
  const std::string html =
      line_chart(
          {.title = "Loss <1>", .series = {falling("a", 100), falling("b", 50, 3)}, .smooth = true})
          .text;
  EXPECT_TRUE(well_formed(html));
  EXPECT_TRUE(has(html, "Loss &lt;1&gt;"));
  for (const char* part : {"class=\"curve c0\"", "class=\"curve c0 raw\"", "class=\"curve c1\"",
                           "<i class=\"c0\"></i>a <b>4</b>", "<i class=\"c1\"></i>b <b>4</b>"})
    EXPECT_TRUE(has(html, part)) << part;
  EXPECT_FALSE(has(html, "nan"));
}

TEST(LineChart, ThePointerFindsTheValueOfEveryStepOfAShortRun) {
  const std::string html =
      line_chart({.title = "t", .series = {{"loss", {{1, 5.5}, {2, 4.5}, {3, 4.25}}}}}).text;
  for (const char* part :
       {">step 1<", ">loss 5.5<", ">step 2<", ">loss 4.5<", ">step 3<", ">loss 4.25<"})
    EXPECT_TRUE(has(html, part)) << part;
}

TEST(LineChart, StaysSmallForLongRuns) {
  std::vector<Series> many(8, falling("s", 100'000));
  EXPECT_LT(line_chart({.title = "t", .series = many, .smooth = true}).text.size(), 400'000U);
}

TEST(LineChart, ColorsEightSeriesAndMutesTheRest) {
  std::vector<Series> many(11, falling("s", 5));
  many[0].muted = true;
  const std::string html = line_chart({.title = "t", .series = many}).text;
  EXPECT_TRUE(has(html, "class=\"curve c7\""));
  EXPECT_EQ(count(html, "class=\"curve muted\""), 3U);
  EXPECT_TRUE(has(html, ">3 more<") || has(html, "3 more</li>"));
}

TEST(LineChart, LogarithmicAxesLeaveOutWhatHasNoLogarithm) {
  const std::string html = line_chart({.title = "t",
                                       .series = {{"a", {{0, 1}, {1, 0}, {10, 1e-3}, {100, 1e-1}}}},
                                       .log_x = true,
                                       .log_y = true})
                               .text;
  EXPECT_TRUE(well_formed(html));
  EXPECT_TRUE(has(html, ">0.001</text>"));
  EXPECT_TRUE(has(html, ">100</text>"));
  EXPECT_FALSE(has(html, "nan"));
  EXPECT_FALSE(has(html, "inf"));
}

TEST(LineChart, SpikesGapsAndEmptinessDoNotSpoilIt) {
  Series series = falling("a", 100);
  series.points[40].y = 1e6;
  series.points[41].y = kNone;
  series.points[42].y = std::numeric_limits<double>::infinity();
  const std::string html = line_chart({.title = "t", .series = {series}}).text;
  EXPECT_FALSE(has(html, "nan"));
  EXPECT_FALSE(has(html, "inf"));
  EXPECT_TRUE(has(html, ">4.2</text>")) << "the scale is still that of the curve";
  for (const std::vector<Series>& none :
       {std::vector<Series>{}, {{"a", {}}}, {{"a", {{1, kNone}}}}})
    EXPECT_TRUE(has(line_chart({.title = "t", .series = none}).text, "no values"));
}

TEST(LineChart, NumbersThatDoublesCannotTellApartEnd) {
  for (const std::vector<Point>& points : {std::vector<Point>{{1, 1}},
                                           {{9.2e18, 1}, {9.2e18, 2}},
                                           {{1, 1e29}, {2, std::nextafter(1e29, 2e29)}},
                                           {{1, -1e29}, {2, 1e29}},
                                           {{1, 5e-324}, {2, 0}},
                                           {{1, 0}, {2, 0}}})
    for (const bool log : {false, true}) {
      const std::string html =
          line_chart({.title = "t", .series = {{"a", points}}, .log_x = log, .log_y = log}).text;
      EXPECT_LT(html.size(), 20'000U);
      EXPECT_FALSE(has(html, "nan"));
    }
}

TEST(LineChart, ASeriesThatDivergedDoesNotFlattenTheOthers) {
  std::vector<Series> series{falling("a", 50), falling("b", 50), falling("c", 50)};
  for (Point& p : series[2].points) p.y += 1000;
  EXPECT_TRUE(has(line_chart({.title = "t", .series = series}).text, ">4</text>"));
}

TEST(LineChart, MarksStandWhereTheyBelong) {
  const LineChart chart{
      .title = "t", .series = {falling("a", 100)}, .marks = {{50, "resumed"}, {500, "outside"}}};
  const std::string html = line_chart(chart).text;
  EXPECT_TRUE(has(html, ">resumed</text>"));
  EXPECT_FALSE(has(html, "outside"));
}

TEST(ParallelCoordinates, DrawsMembersWorstFirstAndMarksThoseWithoutAResult) {
  const std::string html =
      parallel_coordinates(
          {.title = "t",
           .dimensions = {{"lr", {}, true}, {"schedule", {"1F1B", "GPipe"}}, {"loss"}},
           .members = {{"best", {1e-3, 0, 4.1}},
                       {"failed", {1e-2, 1, kNone}},
                       {"worst", {1e-4, 1, 5.0}}}})
          .text;
  EXPECT_TRUE(well_formed(html));
  EXPECT_LT(html.find("<title>failed"), html.find("<title>worst"));
  EXPECT_LT(html.find("<title>worst"), html.find("<title>best"));
  EXPECT_TRUE(has(html, "member none"));
  EXPECT_TRUE(has(html, "schedule GPipe\nloss not known"));
  EXPECT_TRUE(has(html, ">1e-4</text>"));
  EXPECT_FALSE(has(html, "nan"));
  EXPECT_THROW(parallel_coordinates({"t", {{"a"}, {"b"}}, {{"m", {1}}}}), ContractViolation);
}

TEST(HeatMap, HasACellForEachPairAndMarksMissingOnes) {
  const HeatMap chart{"t", "lr", "layers", {"1e-3", "1e-2"}, {"2", "4"}, {4.1, 5.0, kNone, 1e9}};
  const std::string html = heat_map(chart).text;
  EXPECT_TRUE(well_formed(html));
  EXPECT_EQ(count(html, "<rect"), 4U);
  EXPECT_TRUE(has(html, "<title>lr 1e-3, layers 2: 4.1</title>"));
  EXPECT_TRUE(has(html, "<title>lr 1e-3, layers 4: none</title>"));
  EXPECT_TRUE(has(html, "fill-opacity=\"1.00\"")) << "the best is the strongest";
  EXPECT_FALSE(has(html, "nan"));
  EXPECT_THROW(heat_map({"t", "x", "y", {"1"}, {"1"}, {}}), ContractViolation);
}

}  // namespace
}  // namespace tessera::report
