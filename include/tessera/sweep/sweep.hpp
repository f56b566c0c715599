// SPDX-License-Identifier: Apache-2.0
// A sweep: one job, many settings. The file says which; number -> point is a pure function of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/config/option_table.hpp"

namespace tessera::sweep {

/// One key of a job and the value that a point gives it; the value has the option's own type.
struct Setting {
  const config::Option* option;
  config::Value value;
};
using Settings = std::vector<Setting>;

/// What varies together: one key of [grid], all of [zip], all of [[list]], all of [random]. Axes
/// are multiplied.
struct Axis {
  std::string block;           ///< "grid", "zip", "list" or "random"
  std::vector<Settings> rows;  ///< at least one
};

/// Points that have one of the given values for each of these keys are omitted.
struct Exclusion {
  struct Condition {
    const config::Option* option;
    std::vector<config::Value> values;
  };
  int line = 0;
  std::vector<Condition> conditions;
};

/// A sweep file, checked: keys exist, values fit their types, no key is in two blocks.
struct Sweep {
  std::string file;                     ///< as the user named it
  std::string job;                      ///< path of the job file
  std::string folder;                   ///< of the points
  int ranks = 1;                        ///< of each point
  std::optional<std::int64_t> seconds;  ///< the most that a point takes
  std::optional<int> at_once;           ///< points that run at the same time
  Settings common;                      ///< [set]: of every point
  std::vector<Axis> axes;               ///< the last one varies fastest
  std::vector<Exclusion> exclusions;
  /// options of sbatch without dashes, and their values
  std::vector<std::pair<std::string, std::string>> slurm;
};

/// One run of the sweep.
struct Point {
  /// from 1, in the product of the axes; an exclusion does not renumber the others
  int number = 0;
  Settings settings;
};

constexpr std::int64_t kMostPoints = 10'000;

/// Throws Error(usage) with every problem of the file and its file:line:column.
Sweep read_sweep(const std::string& file);

/// Points with the excluded ones: the largest number.
int numbers(const Sweep& sweep);
/// The point of a number from 1 to numbers(); empty where it is excluded. A pure function of both.
std::optional<Point> point_of(const Sweep& sweep, int number);
/// Every point that is not excluded, by number.
std::vector<Point> points(const Sweep& sweep);

std::string point_name(int number);  ///< "point-0007", the point's folder in that of the sweep
/// "--optimizer.lr=0.001" for the sweep's common settings and the point's.
std::vector<std::string> flags(const Sweep& sweep, const Point& point);
/// What follows `tessera train`: job file, flags, and the point's folder.
std::vector<std::string> train_arguments(const Sweep& sweep, const Point& point);
/// "optimizer.lr=0.001 training.seed=2": for messages and tables.
std::string describe(const Settings& settings);
std::string shown_value(const config::Value& value);

/// Says what is wrong with a job that has these arguments; empty when nothing is.
using JobCheck = std::function<std::string(const std::vector<std::string>& train_arguments)>;
/// Checks every point, and throws Error(usage) that lists each problem once, with the points that
/// have it.
void check_points(const Sweep& sweep, const std::vector<Point>& points, const JobCheck& check);

/// A file that a job of these arguments names and cannot use, and with what its run would end.
struct FileProblem {
  std::string text;
  ExitCode code = ExitCode::data;
};
using FileCheck =
    std::function<std::vector<FileProblem>(const std::vector<std::string>& train_arguments)>;
/// Throws Error, with the code of the first, if every point has a problem. It lists those that all
/// have, else those of the first point. Others stop their points alone, when these start.
void check_common_files(const Sweep& sweep, const std::vector<Point>& points,
                        const FileCheck& check);

/// The axes, the number of points and what they may cost at most, in lines.
std::string overview(const Sweep& sweep, std::size_t points);
/// One line a point.
std::string table(const std::vector<Point>& points);

}  // namespace tessera::sweep
