// SPDX-License-Identifier: Apache-2.0
#include "key_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tessera::sweep {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kRatio = 8;
constexpr std::size_t kMostGroups = 12, kRanges = 8;

const Cell* cell_of(const PointResult& result, const std::string& key) {
  const auto& values = result.status.values;
  const auto found = std::ranges::find(values, key, &std::pair<std::string, Cell>::first);
  return found == values.end() ? nullptr : &found->second;
}

/// A log axis for what grows by factors.
bool grows_by_factors(const std::vector<double>& values) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    if (value <= 0) return false;
    least = std::min(least, value), most = std::max(most, value);
  }
  return most >= kRatio * least;
}

std::set<double> distinct(const std::vector<double>& values) {
  std::set<double> all;
  for (const double value : values)
    if (!std::isnan(value)) all.insert(value);
  return all;
}

/// Ranges of equal width on the axis.
Groups ranges_of(const KeyAxis& axis, double least, double most) {
  const bool log = axis.dimension.log;
  const auto place = [log](double value) { return log ? std::log(value) : value; };
  const double low = place(least), width = (place(most) - low) / static_cast<double>(kRanges);
  Groups groups;
  for (std::size_t i = 0; i <= kRanges; ++i) {
    const double edge = low + width * static_cast<double>(i);
    if (i < kRanges)
      groups.labels.push_back(
          report::short_number(log ? std::exp(edge + width / 2) : edge + width / 2));
  }
  for (const double value : axis.values)
    groups.of_point.push_back(std::isnan(value)
                                  ? -1
                                  : std::clamp(static_cast<int>((place(value) - low) / width), 0,
                                               static_cast<int>(kRanges) - 1));
  return groups;
}

}  // namespace

KeyAxis axis_of(const Results& results, const std::string& key) {
  KeyAxis axis{{key, {}, false}, {}};
  const bool numbers = std::ranges::all_of(results.points, [&](const PointResult& result) {
    const Cell* cell = cell_of(result, key);
    return !cell || std::holds_alternative<double>(*cell);
  });
  for (const PointResult& result : results.points) {
    const Cell* cell = cell_of(result, key);
    if (!cell) {
      axis.values.push_back(kNone);
    } else if (numbers) {
      axis.values.push_back(std::get<double>(*cell));
    } else {
      auto& labels = axis.dimension.labels;
      const auto at = std::ranges::find(labels, text_of(*cell));
      axis.values.push_back(static_cast<double>(at - labels.begin()));
      if (at == labels.end()) labels.push_back(text_of(*cell));
    }
  }
  axis.dimension.log = numbers && grows_by_factors(axis.values);
  return axis;
}

Groups groups_of(const KeyAxis& axis) {
  const std::set<double> all = distinct(axis.values);
  if (axis.dimension.labels.empty() && all.size() > kMostGroups)
    return ranges_of(axis, *all.begin(), *all.rbegin());
  Groups groups;
  for (const double value : all)
    groups.labels.push_back(axis.dimension.labels.empty()
                                ? report::short_number(value)
                                : axis.dimension.labels[static_cast<std::size_t>(value)]);
  for (const double value : axis.values)
    groups.of_point.push_back(
        std::isnan(value) ? -1 : static_cast<int>(std::distance(all.begin(), all.find(value))));
  return groups;
}

}  // namespace tessera::sweep
