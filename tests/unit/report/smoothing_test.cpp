// SPDX-License-Identifier: Apache-2.0
#include "smoothing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "svg_plot.hpp"

namespace tessera::report {
namespace {

using testing::ElementsAre;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

TEST(MovingMean, ShrinksAtTheStartAndIsCutAtTheEnd) {
  const std::vector<double> values{8, 4, 3, 1, 2};
  EXPECT_THAT(moving_mean(values, 1), ElementsAre(8, 5, 8.0 / 3, 2, 1.5));
  EXPECT_THAT(moving_mean(values, 0), ElementsAre(8, 4, 3, 1, 2));
}

TEST(MovingMean, KeepsAStraightLineStraightWhereTheWindowIsWhole) {
  std::vector<double> line(100);
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = 8 - 0.03 * static_cast<double>(i);
  const auto smoothed = smooth(line, 5);
  for (std::size_t i = 0; i < 90; ++i) EXPECT_NEAR(smoothed[i], line[i], 1e-12) << i;
}

TEST(MovingMean, PassesOverWhatIsNotFinite) {
  const std::vector<double> values{1, kMissing, 3, std::numeric_limits<double>::infinity()};
  const auto means = moving_mean(values, 1);
  EXPECT_DOUBLE_EQ(means[1], 2);
  EXPECT_DOUBLE_EQ(means[3], 3);
  EXPECT_TRUE(std::isnan(moving_mean(std::vector{kMissing}, 3)[0]));
  EXPECT_TRUE(moving_mean({}, 3).empty());
}

TEST(Thin, KeepsTheExtremesOfEachColumnInTheirOrder) {
  std::vector<Point> points;
  for (int i = 0; i < 100; ++i)
    points.push_back({static_cast<double>(i), i == 13 ? 50.0 : i == 17 ? -50.0 : std::sin(i)});
  const auto thinned = thin(points, 10);
  EXPECT_LE(thinned.size(), 22U);
  std::vector<double> ys;
  for (std::size_t i = 0; i < thinned.size(); ++i) {
    ys.push_back(thinned[i].y);
    EXPECT_TRUE(i == 0 || thinned[i].x > thinned[i - 1].x);
  }
  EXPECT_THAT(ys, testing::Contains(50.0));
  EXPECT_THAT(ys, testing::Contains(-50.0));
}

TEST(Thin, LeavesFewPointsAloneAndKeepsGaps) {
  const std::vector<Point> few{{1, 2}, {2, kMissing}, {3, 4}};
  EXPECT_EQ(thin(few, 10).size(), 3U);
  std::vector<Point> gap(100);
  for (int i = 0; i < 100; ++i)
    gap[static_cast<std::size_t>(i)] = {static_cast<double>(i), i / 20 == 2 ? kMissing : 1.0};
  const auto thinned = thin(gap, 5);
  EXPECT_TRUE(
      std::any_of(thinned.begin(), thinned.end(), [](const Point& p) { return std::isnan(p.y); }));
}

TEST(Ticks, AreRoundAndInside) {
  EXPECT_DOUBLE_EQ(tick_step(4, 8.1, 7), 1);
  EXPECT_DOUBLE_EQ(tick_step(0, 100, 9), 20);
  EXPECT_DOUBLE_EQ(tick_step(0, 3, 9, 1), 1);
  EXPECT_THAT(ticks(4.2, 8.1, 1), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(ticks(0, 0.3, 0.1), testing::SizeIs(4));
  EXPECT_FALSE(std::signbit(ticks(0, 1, 1)[0]));
}

TEST(Labels, HaveTheDigitsThatTheyNeed) {
  EXPECT_EQ(tick_label(8, 1), "8");
  EXPECT_EQ(tick_label(4.5, 0.5), "4.5");
  EXPECT_EQ(tick_label(0.02, 0.02), "0.02");
  EXPECT_EQ(tick_label(200, 100), "200");
  EXPECT_EQ(count_label(250), "250");
  EXPECT_EQ(count_label(2500), "2.5k");
  EXPECT_EQ(count_label(1e6), "1M");
}

TEST(PathData, LiftsThePenOverGaps) {
  const std::vector<Point> points{{0, 0}, {1, 1}, {2, kMissing}, {3, 1}};
  EXPECT_EQ(path_data(points, {0, 3, 0, 30}, {0, 1, 10, 0}), "M0.0 10.0L10.0 0.0M30.0 0.0");
}

}  // namespace
}  // namespace tessera::report
