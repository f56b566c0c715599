// SPDX-License-Identifier: Apache-2.0
// A sweep as people read it before they start it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reading.hpp"
#include "text_table.hpp"

namespace tessera::sweep {
namespace {

constexpr std::size_t kValuesShown = 8;

/// The keys of all rows, each once.
std::vector<std::string> keys_in(const std::vector<Settings>& rows) {
  std::vector<std::string> keys;
  for (const Settings& row : rows)
    for (const Setting& setting : row)
      if (std::ranges::find(keys, setting.option->key) == keys.end())
        keys.emplace_back(setting.option->key);
  return keys;
}

std::string described(const Axis& axis) {
  const std::string keys = fmt::format("{}", fmt::join(keys_in(axis.rows), ", "));
  if (axis.block != "grid")
    return fmt::format("\n  {:<7} {}: {} {}", axis.block, keys, axis.rows.size(),
                       axis.block == "random" ? "draws" : "rows");
  std::vector<std::string> values;
  for (const Settings& row : axis.rows)
    if (values.size() < kValuesShown) values.push_back(shown_value(row.front().value));
  if (axis.rows.size() > kValuesShown)
    values.push_back(fmt::format("... {} values", axis.rows.size()));
  return fmt::format("\n  {:<7} {}: {}", axis.block, keys, fmt::join(values, ", "));
}

std::string cost(const Sweep& sweep, std::size_t points) {
  if (!sweep.seconds) return "without a time limit: rank-hours are unknown";
  const double hours =
      static_cast<double>(*sweep.seconds) / 3600 * sweep.ranks * static_cast<double>(points);
  return fmt::format("at most {} each: at most {:.6g} rank-hours", time_text(*sweep.seconds),
                     hours);
}

}  // namespace

std::string overview(const Sweep& sweep, std::size_t points) {
  std::vector<std::string> factors;
  for (const Axis& axis : sweep.axes) factors.push_back(fmt::format("{}", axis.rows.size()));
  const std::size_t without = static_cast<std::size_t>(numbers(sweep)) - points;
  std::string text = fmt::format("{}: {} point{}", sweep.file, points, points == 1 ? "" : "s");
  if (factors.size() > 1 || without > 0) text += fmt::format(" = {}", fmt::join(factors, " x "));
  if (without > 0) text += fmt::format(", without {} excluded", without);
  for (const Axis& axis : sweep.axes) text += described(axis);
  if (!sweep.common.empty()) text += fmt::format("\n  {:<7} {}", "set", describe(sweep.common));
  return text + fmt::format("\n{} on {} rank{} a point, {}\nfolder {}\n", sweep.job, sweep.ranks,
                            sweep.ranks == 1 ? "" : "s", cost(sweep, points), sweep.folder);
}

std::string table(const std::vector<Point>& points) {
  std::vector<Settings> rows;
  for (const Point& point : points) rows.push_back(point.settings);
  const std::vector<std::string> keys = keys_in(rows);
  TextTable cells{{"point"}};
  cells.front().insert(cells.front().end(), keys.begin(), keys.end());
  for (const Point& point : points) {
    std::vector<std::string>& line = cells.emplace_back(keys.size() + 1, "-");
    line.front() = fmt::format("{}", point.number);
    for (const Setting& setting : point.settings)
      line[1 + static_cast<std::size_t>(std::ranges::find(keys, setting.option->key) -
                                        keys.begin())] = shown_value(setting.value);
  }
  return aligned(cells);
}

}  // namespace tessera::sweep
