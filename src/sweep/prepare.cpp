// SPDX-License-Identifier: Apache-2.0
// Folders of points, made before anything runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "point_files.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/shell_words.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/base/utf8.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/metrics/run_folder.hpp"
#include "tessera/sweep/point_folder.hpp"

namespace tessera::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t kConflictsShown = 3;

void make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  require(!code, ExitCode::environment, "cannot make the folder {} ({}); choose another `folder`",
          folder.string(), code.message());
}

ordered_json json_value(const config::Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* number = std::get_if<double>(&value); number && std::isfinite(*number))
    return *number;
  return shown_value(value);
}

std::int64_t steps_of(const Sweep& sweep, const Point& point) {
  return config::resolve(train_arguments(sweep, point)).job.training.steps;
}

std::string point_text(const Sweep& sweep, const Point& point) {
  ordered_json values = ordered_json::object();
  for (const Setting& setting : point.settings)
    values[std::string(setting.option->key)] = json_value(setting.value);
  const ordered_json text{{"format", "tessera-point 1"},
                          {"point", point.number},
                          {"values", values},
                          {"steps", steps_of(sweep, point)},
                          {"flags", flags(sweep, point)}};
  return json_text(text, 1) + "\n";
}

fs::path folder_of(const Sweep& sweep, const Point& point) {
  return fs::path(sweep.folder) / point_name(point.number);
}

bool has_begun(const PointStatus& point) {
  return point.state == State::running || point.state == State::queued ||
         fs::exists(point.folder / kMetricsFile);
}

/// "point-0007 ran with ..., and now has ..."; empty where it is the same.
std::string conflict(const Sweep& sweep, const Point& point, const fs::path& folder) {
  const ordered_json before = parse_ordered_json(read_text(folder / kPointFile).value_or("null"));
  if (!before.is_object() || !before.contains("flags") ||
      before["flags"] == ordered_json(flags(sweep, point)))
    return "";
  std::vector<std::string> then;
  for (const ordered_json& flag : before["flags"])
    then.push_back(flag.is_string() ? flag.get<std::string>() : json_text(flag));
  return fmt::format("\n  {} ran with {}, and now has {}", point_name(point.number),
                     shell_words(then), shell_words(flags(sweep, point)));
}

/// `points`: those that have begun.
void refuse_other_settings(const Sweep& sweep, const std::vector<Point>& points) {
  std::vector<std::string> conflicts;
  for (const Point& point : points)
    if (std::string text = conflict(sweep, point, folder_of(sweep, point)); !text.empty())
      conflicts.push_back(std::move(text));
  if (conflicts.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < std::min(kConflictsShown, conflicts.size()); ++i)
    text += conflicts[i];
  fail(ExitCode::usage,
       "{}: {} point(s) of {} have run with other settings; choose another `folder` (`tessera "
       "sweep status {}` shows what ran){}",
       sweep.file, conflicts.size(), sweep.folder, shell_word(sweep.folder), text);
}

void refuse_other_ranks(const Sweep& sweep) {
  const fs::path folder = sweep.folder;
  const ordered_json origin =
      parse_ordered_json(read_text(folder / metrics::kSweepFile).value_or(""));
  if (!origin.is_object() || !origin.contains("ranks")) return;
  const auto ranks = whole_number(origin["ranks"], 1, std::numeric_limits<int>::max());
  require(!ranks || *ranks == sweep.ranks, ExitCode::usage,
          "{}: points of {} have run on {} ranks, and now have {}; choose another `folder`",
          sweep.file, sweep.folder, *ranks, sweep.ranks);
}

void refuse_other_job(const Sweep& sweep) {
  const fs::path copy = fs::path(sweep.folder) / kJobCopy;
  const auto now = read_text(sweep.job), before = read_text(copy);
  require(!now || !before || before == now, ExitCode::usage,
          "{} has changed since points of {} ran (copy from then: {}); choose another `folder`, or "
          "remove the copy to mix both versions",
          sweep.job, sweep.folder, copy.string());
}

/// Keeps the job file for later starts.
void keep_job(const Sweep& sweep) {
  const fs::path copy = fs::path(sweep.folder) / kJobCopy;
  const auto now = read_text(sweep.job);
  require(now.has_value(), ExitCode::usage, "{}: cannot read the job file {}", sweep.file,
          sweep.job);
  if (read_text(copy) != now) write_file_atomically(copy, *now);
}

}  // namespace

void refuse_another_sweep(const Sweep& sweep, const std::vector<PointStatus>& statuses) {
  std::vector<Point> begun;
  for (const PointStatus& status : statuses)
    if (auto point = has_begun(status) ? point_of(sweep, status.number) : std::nullopt)
      begun.push_back(std::move(*point));
  if (begun.empty()) return;
  refuse_other_settings(sweep, begun);
  refuse_other_ranks(sweep);
  refuse_other_job(sweep);
}

void add_missing(const Sweep& sweep, std::vector<PointStatus>& statuses) {
  std::set<int> known;
  for (const PointStatus& status : statuses) known.insert(status.number);
  for (const Point& point : points(sweep)) {
    if (known.contains(point.number)) continue;
    PointStatus& status = statuses.emplace_back();
    status.number = point.number;
    status.folder = folder_of(sweep, point);
    status.steps = steps_of(sweep, point);
    for (const Setting& setting : point.settings)
      status.values.emplace_back(setting.option->key, cell_of(json_value(setting.value)));
  }
  std::ranges::sort(statuses, {}, &PointStatus::number);
}

void prepare(const Sweep& sweep, const std::vector<Point>& points) {
  const std::string file = fs::absolute(sweep.file).lexically_normal().string();
  require(valid_utf8_prefix(file) == file.size(), ExitCode::usage,
          "the path of the sweep file is not UTF-8, and the sweep's folder notes it; rename {}",
          with_whole_characters(file));
  make_folder(sweep.folder);
  refuse_another_sweep(sweep, read_statuses(sweep.folder));
  keep_job(sweep);
  const ordered_json origin{{"format", "tessera-sweep 1"},
                            {"sweep", file},
                            {"points", points.size()},
                            {"ranks", sweep.ranks}};
  write_file_atomically(fs::path(sweep.folder) / metrics::kSweepFile, json_text(origin, 1) + "\n");
  for (const Point& point : points) {
    const fs::path folder = folder_of(sweep, point);
    make_folder(folder);
    const std::string text = point_text(sweep, point);
    if (read_text(folder / kPointFile) != text) write_file_atomically(folder / kPointFile, text);
  }
}

fs::path folder_named(const std::string& file_or_folder) {
  const fs::path folder =
      fs::is_directory(file_or_folder) ? file_or_folder : read_sweep(file_or_folder).folder;
  require(metrics::is_sweep_folder(folder), ExitCode::usage,
          "{} has no points yet; start them with `tessera sweep run` or `submit`", folder.string());
  return folder;
}

std::string sweep_file_of(const fs::path& folder) {
  const ordered_json origin =
      parse_ordered_json(read_text(folder / metrics::kSweepFile).value_or(""));
  require(origin.is_object() && origin.contains("sweep") && origin["sweep"].is_string(),
          ExitCode::usage, "{} does not name its sweep file; name the sweep file itself",
          (folder / metrics::kSweepFile).string());
  return origin["sweep"].get<std::string>();
}

}  // namespace tessera::sweep
