// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "point_files.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/host_name.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/sweep/point_folder.hpp"
#include "text_table.hpp"

namespace tessera::sweep {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::array<std::string_view, 6> kNames{"missing", "queued", "running",
                                                 "stopped", "failed", "done"};
constexpr std::chrono::seconds kSilence{
    60};  ///< an owner touches its folder each 5 s, and needs some to begin

constexpr std::int64_t kMostSteps = std::numeric_limits<std::int64_t>::max();

/// Whether `where` names a process of this machine, and it is gone. Another one may have its PID.
bool is_gone(const std::string& where) {
  const std::string here = fmt::format("local on {}, sweep's PID ", host_name());
  if (!where.starts_with(here)) return false;
  const long pid = std::strtol(where.c_str() + here.size(), nullptr, 10);
  return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

/// Whether the owner of a run's folder is a living process of this machine.
bool has_living_owner(const fs::path& folder) {
  const ordered_json owner = parse_ordered_json(read_text(folder / ".owner").value_or(""));
  if (!owner.is_object() || !owner.contains("host") || !owner.contains("pid")) return false;
  const auto pid = whole_number(owner["pid"], 1, std::numeric_limits<pid_t>::max());
  return owner["host"] == host_name() && pid && ::kill(static_cast<pid_t>(*pid), 0) == 0;
}

/// Whether anything that a living point touches was touched of late. Clocks may differ a little.
bool alive(const fs::path& folder, const std::string& where) {
  if (is_gone(where)) return has_living_owner(folder);  // its ranks may still save
  return std::ranges::any_of(
      std::array{".owner", kAttemptsFile, kMetricsFile}, [&](const char* name) {
        std::error_code error;
        const auto touched = fs::last_write_time(folder / name, error);
        return !error && std::chrono::abs(fs::file_time_type::clock::now() - touched) < kSilence;
      });
}

/// Reads the steps reached and skipped from the last whole line of metrics.jsonl; leaves 0 where it
/// does not say.
void read_last_step(PointStatus& point) {
  std::string text = tail_of(point.folder / kMetricsFile, 64 << 10);
  text.resize(text.rfind('\n') == text.npos ? 0 : text.rfind('\n'));
  const ordered_json line = parse_ordered_json(std::string_view(text).substr(text.rfind('\n') + 1));
  if (!line.is_object()) return;
  if (line.contains("step")) point.step = whole_number(line["step"], 0, kMostSteps).value_or(0);
  if (line.contains("skipped_steps") && line["skipped_steps"].is_number())
    point.skipped =
        static_cast<std::int64_t>(std::clamp(line["skipped_steps"].get<double>(), 0.0, 1e15));
}

void read_point_file(PointStatus& point) {
  const fs::path file = point.folder / kPointFile;
  const ordered_json text = parse_ordered_json(read_text(file).value_or(""));
  const auto member = [&](const char* key) {
    return text.is_object() && text.contains(key) ? text[key] : ordered_json();
  };
  const auto number = whole_number(member("point"), 1, std::numeric_limits<int>::max());
  const auto steps = whole_number(member("steps"), 0, kMostSteps);
  const ordered_json values = member("values");
  require(number && steps && values.is_object(), ExitCode::data,
          "{} is damaged; remove it, and run the sweep again to write a new one", file.string());
  point.number = static_cast<int>(*number);
  point.steps = *steps;
  for (const auto& [key, value] : values.items()) point.values.emplace_back(key, cell_of(value));
}

void judge_end(PointStatus& point, int code) {
  // srun returns 0 when it could not start its ranks.
  const bool idle = code == 0 && point.step == 0;
  point.state = code == 0 && !idle ? State::done : code == 75 ? State::stopped : State::failed;
  if (point.state == State::done) return;
  const std::string printed = point.state == State::failed ? printed_reason(point.folder) : "";
  point.reason = !printed.empty() ? printed
                 : idle ? "exit code 0 without a step: the ranks did not start; see output.log"
                        : meaning_of(code);
}

void judge(PointStatus& point, const Attempts& attempts) {
  point.code = attempts.code;
  if (attempts.count == 0) {
    point.state = State::missing;
  } else if (!attempts.code) {
    point.state = alive(point.folder, attempts.where) ? State::running : State::failed;
    point.reason =
        point.state == State::running
            ? attempts.where
            : fmt::format("ended without an exit code: its job was killed, or its node failed ({})",
                          attempts.where);
  } else {
    judge_end(point, *attempts.code);
    if (!attempts.why.empty() && point.state != State::done)
      point.reason = fmt::format("{}: {}", attempts.why, point.reason);
  }
}

}  // namespace

std::string_view name_of(State state) { return kNames[static_cast<std::size_t>(state)]; }

Cell cell_of(const ordered_json& value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;  // a double holds every integer up to it
  const bool loses_digits = value.is_number_integer() && !whole_number(value, -kMost, kMost);
  if (value.is_number() && !loses_digits) return value.get<double>();
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string text_of(const Cell& cell) {
  const auto* number = std::get_if<double>(&cell);
  return number ? fmt::format("{}", *number) : std::get<std::string>(cell);
}

void note_start(const fs::path& point_folder, const std::string& where) {
  const std::string now = utc_now();
  append_to(
      point_folder / kOutputFile,
      fmt::format("=== attempt {}: {} {}\n", read_attempts(point_folder).count + 1, now, where));
  append_to(point_folder / kAttemptsFile, fmt::format("start {} {}\n", now, where));
}

void note_end(const fs::path& point_folder, int code, const std::string& why) {
  append_to(point_folder / kAttemptsFile,
            fmt::format("end {} {}{}{}\n", utc_now(), code, why.empty() ? "" : " ", why));
}

PointStatus read_status(const fs::path& point_folder) {
  PointStatus point;
  point.folder = point_folder;
  read_point_file(point);
  const Attempts attempts = read_attempts(point_folder);
  point.attempts = attempts.count;
  read_last_step(point);
  judge(point, attempts);
  set_reason(point, point.reason);
  return point;
}

std::vector<PointStatus> read_statuses(const fs::path& folder) {
  std::vector<PointStatus> points;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("point-") &&
        fs::exists(entry.path() / kPointFile))
      points.push_back(read_status(entry.path()));
  std::ranges::sort(points, {}, &PointStatus::number);
  return points;
}

std::string summary(const std::vector<PointStatus>& points) {
  std::vector<std::string> counts;
  for (const State state :
       {State::done, State::running, State::queued, State::stopped, State::failed, State::missing})
    if (const auto count = std::ranges::count(points, state, &PointStatus::state); count > 0)
      counts.push_back(fmt::format("{} {}", count, name_of(state)));
  return fmt::format("{} point{}: {}", points.size(), points.size() == 1 ? "" : "s",
                     fmt::join(counts, ", "));
}

std::string status_table(const std::vector<PointStatus>& points) {
  TextTable cells{{"point", "state", "code", "step", "tries", "settings"}};
  for (const PointStatus& point : points) {
    std::string settings;
    for (const auto& [key, value] : point.values)
      settings += fmt::format("{}{}={}", settings.empty() ? "" : " ", key, text_of(value));
    if (!point.reason.empty()) settings += "\n    " + point.reason;
    cells.push_back({fmt::format("{}", point.number), std::string(name_of(point.state)),
                     point.code ? fmt::format("{}", *point.code) : "-",
                     fmt::format("{}/{}", point.step, point.steps),
                     fmt::format("{}", point.attempts), settings});
  }
  return aligned(cells);
}

}  // namespace tessera::sweep
