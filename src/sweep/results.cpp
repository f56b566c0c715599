// SPDX-License-Identifier: Apache-2.0
#include "tessera/sweep/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "point_files.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "tessera/metrics/record_columns.hpp"
#include "text_table.hpp"

namespace tessera::sweep {
namespace {

namespace fs = std::filesystem;
using metrics::StepRecord;
using nlohmann::ordered_json;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kValidation = "validation/loss";

/// A point's records; none, and a word in its reason, where they cannot be read.
std::vector<StepRecord> records_of(PointStatus& point) {
  const fs::path file = point.folder / kMetricsFile;
  if (!fs::exists(file)) return {};
  try {
    return metrics::read_records(file);
  } catch (const Error& error) {
    point.reason += fmt::format("{}{}", point.reason.empty() ? "" : "; ", error.what());
    return {};
  }
}

PointResult result_of(const PointStatus& status, const std::vector<StepRecord>& records,
                      const std::string& by) {
  PointResult result{status, kUnknown, kUnknown, 0, kUnknown, records.empty() ? kUnknown : 0, {}};
  double tokens = 0, seconds = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const StepRecord& record = records[i];
    if (std::isfinite(record.step_seconds)) result.seconds += record.step_seconds;
    if (i >= records.size() / 2 && std::isfinite(record.step_seconds))
      tokens += static_cast<double>(record.tokens), seconds += record.step_seconds;
    const double value = metrics::value_in(record, by);
    if (!std::isfinite(value)) continue;
    result.curve.emplace_back(record.step, value);
    result.last = value;
    if (!(result.best <= value)) result.best = value, result.best_step = record.step;
  }
  if (seconds > 0) result.tokens_per_second = tokens / seconds;
  return result;
}

std::vector<std::string> columns_in(const std::vector<std::vector<StepRecord>>& records) {
  const std::vector<std::string> own = metrics::column_names();
  std::set<std::string> names(own.begin(), own.end());
  for (const auto& of_point : records)
    for (const StepRecord& record : of_point)
      for (const auto& [name, value] : record.extra) names.insert(name);
  return {names.begin(), names.end()};
}

std::string chosen_column(const std::string& wanted, const std::vector<std::string>& columns) {
  const bool there = std::ranges::find(columns, wanted) != columns.end();
  require(wanted.empty() || there, ExitCode::usage,
          "--by {}: no point has this column{}; there are {}", wanted,
          did_you_mean(wanted, columns), fmt::join(columns, ", "));
  if (!wanted.empty()) return wanted;
  return std::ranges::find(columns, kValidation) != columns.end() ? kValidation : "loss";
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string value_text(const PointStatus& point, const std::string& key) {
  const auto value = std::ranges::find(point.values, key, &std::pair<std::string, Cell>::first);
  return value == point.values.end() ? "" : text_of(value->second);
}

ordered_json json_number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

ordered_json json_of(const PointResult& result) {
  ordered_json values = ordered_json::object(), curve = ordered_json::array();
  for (const auto& [key, value] : result.status.values)
    values[key] = std::holds_alternative<double>(value)
                      ? ordered_json(std::get<double>(value))
                      : ordered_json(std::get<std::string>(value));
  for (const auto& [step, value] : result.curve) curve.push_back({step, value});
  const PointStatus& point = result.status;
  return {{"point", point.number},
          {"state", name_of(point.state)},
          {"exit_code", point.code ? ordered_json(*point.code) : ordered_json()},
          {"reason", point.reason},
          {"step", point.step},
          {"steps", point.steps},
          {"attempts", point.attempts},
          {"values", values},
          {"best", json_number(result.best)},
          {"best_step", result.best_step},
          {"last", json_number(result.last)},
          {"tokens_per_second", json_number(result.tokens_per_second)},
          {"seconds", json_number(result.seconds)},
          {"skipped", point.skipped},
          {"curve", curve}};
}

}  // namespace

Results collect(const std::vector<PointStatus>& points, const std::string& by) {
  std::vector<PointStatus> statuses = points;
  std::vector<std::vector<StepRecord>> records;
  for (PointStatus& point : statuses) records.push_back(records_of(point));
  Results results{chosen_column(by, columns_in(records)), {}, {}};
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    results.points.push_back(result_of(statuses[i], records[i], results.by));
    for (const auto& [key, value] : statuses[i].values)
      if (std::ranges::find(results.keys, key) == results.keys.end()) results.keys.push_back(key);
  }
  // A run that diverged has its best value before its first skipped step, and that is often the
  // lowest of all.
  std::ranges::stable_sort(results.points, {}, [](const PointResult& result) {
    const bool known = std::isfinite(result.best);
    return std::tuple(result.status.state != State::done, !known, result.status.skipped > 0,
                      known ? result.best : 0);
  });
  return results;
}

bool any_skipped(const Results& results) {
  return std::ranges::any_of(results.points,
                             [](const PointResult& result) { return result.status.skipped > 0; });
}

std::string results_csv(const Results& results) {
  std::vector<std::string> header{"point",
                                  "state",
                                  "exit_code",
                                  "step",
                                  "steps",
                                  "attempts",
                                  "best_" + results.by,
                                  "best_step",
                                  "last_" + results.by,
                                  "tokens_per_second",
                                  "seconds",
                                  "skipped"};
  header.insert(header.end(), results.keys.begin(), results.keys.end());
  header.push_back("reason");
  for (std::string& name : header) name = csv_field(name);
  std::string text = fmt::format("{}\r\n", fmt::join(header, ","));
  for (const PointResult& result : results.points) {
    const PointStatus& point = result.status;
    std::vector<std::string> fields{std::to_string(point.number),
                                    std::string(name_of(point.state)),
                                    point.code ? std::to_string(*point.code) : "",
                                    std::to_string(point.step),
                                    std::to_string(point.steps),
                                    std::to_string(point.attempts),
                                    number_text(result.best),
                                    result.curve.empty() ? "" : std::to_string(result.best_step),
                                    number_text(result.last),
                                    number_text(result.tokens_per_second),
                                    number_text(result.seconds),
                                    std::to_string(point.skipped)};
    for (const std::string& key : results.keys) fields.push_back(csv_field(value_text(point, key)));
    fields.push_back(csv_field(point.reason));
    text += fmt::format("{}\r\n", fmt::join(fields, ","));
  }
  return text;
}

std::string results_json(const Results& results) {
  ordered_json points = ordered_json::array();
  for (const PointResult& result : results.points) points.push_back(json_of(result));
  const ordered_json all{{"format", "tessera-sweep-results 1"},
                         {"by", results.by},
                         {"keys", results.keys},
                         {"points", points}};
  return json_text(all) + "\n";
}

std::string results_table(const Results& results, std::size_t most) {
  TextTable cells{{"point", "state", "best " + results.by, "at step", "last"}};
  const bool skipped = any_skipped(results);
  if (skipped) cells.front().emplace_back("skipped");
  for (const std::string& key : results.keys) cells.front().emplace_back(config::leaf_of(key));
  for (const PointResult& result : results.points) {
    if (cells.size() > most) break;
    const auto shown = [](double value) {
      return std::isfinite(value) ? fmt::format("{:.5f}", value) : "-";
    };
    std::vector<std::string>& line = cells.emplace_back();
    line = {std::to_string(result.status.number), std::string(name_of(result.status.state)),
            shown(result.best), result.curve.empty() ? "-" : std::to_string(result.best_step),
            shown(result.last)};
    if (skipped) line.push_back(std::to_string(result.status.skipped));
    for (const std::string& key : results.keys) line.push_back(value_text(result.status, key));
  }
  return aligned(cells);
}

void write_results(const fs::path& folder, const Results& results, const PageText& text) {
  write_file_atomically(folder / "results.csv", results_csv(results));
  write_file_atomically(folder / "results.json", results_json(results));
  write_file_atomically(folder / "index.html", results_page(results, text));
}

}  // namespace tessera::sweep
