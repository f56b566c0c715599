// SPDX-License-Identifier: Apache-2.0
// The folder of a point: what it was asked, how often it was started, and how each attempt ended.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tessera/sweep/sweep.hpp"

namespace tessera::sweep {

/// What a point is doing. `stopped`: saved everything, and resumes when it is run again.
enum class State : std::uint8_t { missing, queued, running, stopped, failed, done };
std::string_view name_of(State state);

/// A value as point.json has it: a number, or text. So is an integer that no double holds.
using Cell = std::variant<double, std::string>;
std::string text_of(const Cell& cell);

struct PointStatus {
  int number = 0;
  std::filesystem::path folder;
  std::vector<std::pair<std::string, Cell>> values;  ///< of the keys that the sweep varies
  State state = State::missing;
  std::optional<int> code;  ///< exit code of the last attempt
  /// one line: why a point is neither done nor missing, and whether it skipped steps
  std::string reason;
  int attempts = 0;
  std::int64_t step = 0, steps = 0;  ///< reached, wanted
  /// steps without an update, of those reached: loss or gradient not finite
  std::int64_t skipped = 0;
};

/// Throws Error(usage) where `statuses`, of the points in the sweep's folder, say that points have
/// begun with other settings, on another number of ranks or with another job file: they do not
/// compare with those of this sweep.
void refuse_another_sweep(const Sweep& sweep, const std::vector<PointStatus>& statuses);

/// Adds the points of `sweep` that `statuses` lack, as missing.
void add_missing(const Sweep& sweep, std::vector<PointStatus>& statuses);

/// The folder of a sweep, when points are to run in it.
///
/// prepare() makes the folder of each point with its point.json, and keeps the job file as it is
/// now. Throws Error(usage) as refuse_another_sweep() does.
void prepare(const Sweep& sweep, const std::vector<Point>& points);

/// The folder of the sweep that a user names: a sweep file's, or a folder itself. Throws
/// Error(usage) where nothing has been prepared.
std::filesystem::path folder_named(const std::string& file_or_folder);
/// The sweep file from which a folder was prepared.
std::string sweep_file_of(const std::filesystem::path& folder);

/// A line of attempts.log, and one of output.log that sets this attempt's output apart. `where` is
/// one line.
void note_start(const std::filesystem::path& point_folder, const std::string& where);
/// `why`: one line that `status` shows; empty where the code says all.
void note_end(const std::filesystem::path& point_folder, int code, const std::string& why = "");

/// From what is in the folder alone. A point without an end is running while its owner gives signs
/// of life.
PointStatus read_status(const std::filesystem::path& point_folder);
/// Of every point that was prepared, by number. Throws Error(data) naming a point.json that is
/// damaged.
std::vector<PointStatus> read_statuses(const std::filesystem::path& folder);

/// "12 points: 9 done, 1 running, 2 failed".
std::string summary(const std::vector<PointStatus>& points);
/// A line for each point, with its values.
std::string status_table(const std::vector<PointStatus>& points);

}  // namespace tessera::sweep
