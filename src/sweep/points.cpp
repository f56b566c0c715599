// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "reading.hpp"

namespace tessera::sweep {
namespace {

bool fits(const Exclusion::Condition& condition, const Settings& settings) {
  const auto setting = std::ranges::find(settings, condition.option, &Setting::option);
  return setting != settings.end() &&
         std::ranges::find(condition.values, setting->value) != condition.values.end();
}

}  // namespace

bool fits(const Exclusion& exclusion, const Settings& settings) {
  return std::ranges::all_of(exclusion.conditions,
                             [&](const auto& condition) { return fits(condition, settings); });
}

int numbers(const Sweep& sweep) {
  std::int64_t product = 1;
  for (const Axis& axis : sweep.axes) product *= static_cast<std::int64_t>(axis.rows.size());
  return static_cast<int>(product);
}

std::optional<Point> point_of(const Sweep& sweep, int number) {
  if (number < 1 || number > numbers(sweep)) return {};
  std::vector<const Settings*> rows;
  std::size_t rest = static_cast<std::size_t>(number) - 1;
  for (auto axis = sweep.axes.rbegin(); axis != sweep.axes.rend(); ++axis) {
    rows.push_back(&axis->rows[rest % axis->rows.size()]);
    rest /= axis->rows.size();
  }
  Point point{number, {}};
  for (auto row = rows.rbegin(); row != rows.rend(); ++row)
    point.settings.insert(point.settings.end(), (*row)->begin(), (*row)->end());
  const bool excluded = std::ranges::any_of(
      sweep.exclusions, [&](const Exclusion& e) { return fits(e, point.settings); });
  return excluded ? std::nullopt : std::optional(std::move(point));
}

std::vector<Point> points(const Sweep& sweep) {
  std::vector<Point> all;
  for (int number = 1; number <= numbers(sweep); ++number)
    if (auto point = point_of(sweep, number)) all.push_back(std::move(*point));
  return all;
}

std::string point_name(int number) { return fmt::format("point-{:04}", number); }

}  // namespace tessera::sweep
