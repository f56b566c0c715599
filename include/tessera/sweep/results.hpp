// SPDX-License-Identifier: Apache-2.0
// What came of a sweep: a table for programs, and a page for people.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tessera/sweep/point_folder.hpp"

namespace tessera::sweep {

/// A point and what its metrics.jsonl says; NaN where it says nothing. Lower is better.
struct PointResult {
  PointStatus status;
  double best, last;  ///< of the column by which points are compared
  std::int64_t best_step = 0;
  double tokens_per_second;                            ///< of the last half of the steps
  double seconds;                                      ///< of all steps
  std::vector<std::pair<std::int64_t, double>> curve;  ///< step and that column
};

struct Results {
  std::string by;                 ///< a column of metrics.jsonl
  std::vector<std::string> keys;  ///< that the sweep varies
  /// Points that are done, then the others. Of each: those without a skipped step, with some,
  /// without a result; best first.
  std::vector<PointResult> points;
};

/// Reads the metrics of every point. `by`: empty for validation/loss where a point has it, else
/// loss. Throws Error(usage) with the columns that there are where no point has the named one.
Results collect(const std::vector<PointStatus>& points, const std::string& by = "");

/// Whether a point skipped steps: table and page have a column for it then. CSV and JSON always
/// have it.
bool any_skipped(const Results& results);
/// Why points with skipped steps come after others, for people to read.
inline constexpr const char* kSkippedNote =
    "Points that skipped steps come after those that did not: their best values may be from "
    "before the first skipped "
    "step.";

/// One line a point, RFC 4180, with a header; unknown numbers are empty.
std::string results_csv(const Results& results);
/// The same as JSON, with the curves.
std::string results_json(const Results& results);
/// The first `most` points as lines of text.
std::string results_table(const Results& results, std::size_t most);

struct PageText {
  std::string title;
  std::string sweep_file, job_file;    ///< their texts; empty: not shown
  std::vector<std::string> heat_keys;  ///< two keys of the heat map; empty: the first two that vary
};
/// A self-contained page: curves, table, parallel coordinates, a heat map, what failed. Throws
/// Error(usage) where a heat map's key is not one that the sweep varies.
std::string results_page(const Results& results, const PageText& text);

/// Writes results.csv, results.json and index.html into the sweep's folder.
void write_results(const std::filesystem::path& folder, const Results& results,
                   const PageText& text);

}  // namespace tessera::sweep
