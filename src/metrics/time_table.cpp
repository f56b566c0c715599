// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/time_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tessera::metrics {
namespace {

constexpr double kLeastShown = 5e-4, kLeastNoted = 0.03;

struct Row {
  std::string name;
  double least = 0, sum = 0, most = 0;
};

double seconds_of(const Times& times, std::string_view name) {
  const auto found = std::ranges::find(times, name, &Times::value_type::first);
  return found == times.end() ? 0 : found->second;
}

/// A name that some ranks lack stands after the one that it follows on the others.
std::vector<std::string> names_of(std::span<const Times> of_ranks) {
  std::vector<std::string> names;
  for (const Times& times : of_ranks) {
    auto at = names.begin();
    for (const auto& [name, seconds] : times) {
      const auto found = std::ranges::find(names, name);
      at = (found != names.end() ? found : names.insert(at, name)) + 1;
    }
  }
  return names;
}

std::vector<Row> rows_of(std::span<const Times> of_ranks) {
  std::vector<Row> rows;
  for (const std::string& name : names_of(of_ranks)) {
    Row row{name, seconds_of(of_ranks.front(), name), 0, 0};
    for (const Times& times : of_ranks) {
      const double seconds = seconds_of(times, name);
      row.least = std::min(row.least, seconds);
      row.most = std::max(row.most, seconds);
      row.sum += seconds;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

double sum_of(std::span<const Times> of_ranks) {
  double sum = 0;
  for (const Times& times : of_ranks)
    for (const auto& [name, seconds] : times) sum += seconds;
  return std::max(sum, 1e-9);
}

std::string number(double seconds) {
  return fmt::format("{:.{}f}", seconds, seconds < 99.9995 ? 3 : 1);
}

bool is_loss(std::string_view row) {
  return row.starts_with(kWaitingIn) || row == "data" || row == "checkpoint";
}

std::string note(const Row& row, double share, std::span<const TimeHint> hints) {
  const auto hint = std::ranges::find(hints, row.name, &TimeHint::row);
  const std::string_view what = row.name == "data"         ? "waiting for data"
                                : row.name == "checkpoint" ? "saving checkpoints"
                                                           : std::string_view(row.name);
  return fmt::format("  note: {:.1f} % of the run was lost {}{}\n", 100 * share, what,
                     hint == hints.end() ? "" : fmt::format("; {} may win it back", hint->flag));
}

}  // namespace

void add_seconds(Times& times, std::string_view name, double seconds) {
  const auto found = std::ranges::find(times, name, &Times::value_type::first);
  if (found == times.end())
    times.emplace_back(name, seconds);
  else
    found->second += seconds;
}

std::string text_of(const Times& times) {
  std::string text;
  for (const auto& [name, seconds] : times) text += fmt::format("{}\t{}\n", name, seconds);
  return text;
}

Times times_of(std::string_view text) {
  Times times;
  while (!text.empty()) {
    const std::size_t tab = text.find('\t'), end = text.find('\n');
    double seconds = 0;
    std::from_chars(text.data() + tab + 1, text.data() + end, seconds);
    times.emplace_back(text.substr(0, tab), seconds);
    text.remove_prefix(end + 1);
  }
  return times;
}

std::string time_table(std::span<const Times> of_ranks) {
  if (of_ranks.empty()) return "";
  const double all = sum_of(of_ranks);
  const auto ranks = static_cast<double>(of_ranks.size());
  std::string text = fmt::format(
      "  {:<24}{:>10}{:>10}{:>10}{:>10}{:>9}\n",
      fmt::format("seconds of {} rank{}", of_ranks.size(), of_ranks.size() == 1 ? "" : "s"), "min",
      "mean", "max", "spread", "share");
  for (const Row& row : rows_of(of_ranks))
    if (row.most * ranks >= kLeastShown * all)
      text += fmt::format("  {:<24}{:>10}{:>10}{:>10}{:>10}{:>7.1f} %\n", row.name,
                          number(row.least), number(row.sum / ranks), number(row.most),
                          number(row.most - row.least), 100 * row.sum / all);
  return text;
}

std::string time_notes(std::span<const Times> of_ranks, std::span<const TimeHint> hints) {
  std::string text;
  const double all = sum_of(of_ranks);
  if (of_ranks.empty()) return text;
  for (const Row& row : rows_of(of_ranks))
    if (is_loss(row.name) && row.sum > kLeastNoted * all) text += note(row, row.sum / all, hints);
  return text;
}

}  // namespace tessera::metrics
