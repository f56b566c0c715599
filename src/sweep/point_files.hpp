// SPDX-License-Identifier: Apache-2.0
// Names in the folder of a sweep and of a point, and how they are read.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tessera/metrics/run_folder.hpp"
#include "tessera/sweep/point_folder.hpp"

namespace tessera::sweep {

inline constexpr const char* kJobCopy = "job.toml";      ///< of a sweep: the job file of its points
inline constexpr const char* kPointFile = "point.json";  ///< of a point: number, values, flags
inline constexpr const char* kAttemptsFile = "attempts.log";  ///< of a point: starts and ends
inline constexpr const char* kOutputFile = "output.log";  ///< of a point: what its ranks printed
using metrics::kMetricsFile;

/// The last `bytes` of a file at most; empty text where there is none.
std::string tail_of(const std::filesystem::path& file, std::size_t bytes);
/// Adds to the end in one write. Throws Error(environment) naming the file.
void append_to(const std::filesystem::path& file, const std::string& text);

/// "2026-11-23T07:27:02Z"
std::string utc_now();

/// attempts.log, read.
struct Attempts {
  int count = 0;
  std::string where;        ///< of the last
  std::optional<int> code;  ///< of the last, where it has ended
  std::string why;          ///< of its end, where that was noted
};
Attempts read_attempts(const std::filesystem::path& point_folder);

/// A value of point.json.
Cell cell_of(const nlohmann::ordered_json& value);

/// The reason that the last attempt printed: the first line of its last message. Empty where it
/// printed none.
std::string printed_reason(const std::filesystem::path& point_folder);
/// What an exit code means, in a few words.
std::string meaning_of(int code);
/// Sets the reason, and adds to it how many steps the point skipped, if any. Such a point may be
/// done.
void set_reason(PointStatus& point, std::string reason);

}  // namespace tessera::sweep
