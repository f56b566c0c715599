// SPDX-License-Identifier: Apache-2.0
// A sweep file while it is being read: its problems, and its keys as options of a job.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/toml_tree.hpp"
#include "tessera/sweep/sweep.hpp"

namespace tessera::sweep {

/// All that is wrong with a file, reported together.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}
  void add(int line, int column, std::string text) {
    found_.push_back({line, column, std::move(text)});
  }
  void add(const config::TomlNode& at, std::string text) {
    add(at.line, at.column, std::move(text));
  }
  void add(const config::TomlEntry& at, std::string text) {
    add(at.line, at.column, std::move(text));
  }
  /// Throws Error(usage) with every problem in the order of the file, if there is one.
  void throw_if_any() const;

 private:
  struct Problem {
    int line, column;
    std::string text;
  };
  std::string file_;
  std::vector<Problem> found_;
};

/// A key of a job in a block of the sweep, and what the block says of it.
struct JobKey {
  const config::Option* option;
  const config::TomlEntry* entry;
};
/// Nested tables as whole keys, in the file's order. Unknown keys, and those that the sweep itself
/// sets, are problems.
std::vector<JobKey> job_keys(const config::TomlTable& table, Problems& problems);

/// One value of the option's own type; empty (and a problem) where it does not fit.
std::optional<config::Value> read_value(const config::Option& option, const config::TomlNode& node,
                                        Problems& problems);

/// From one number to another, in equal differences or equal ratios.
struct Range {
  bool logarithmic = false;
  double first = 0, last = 0;
  std::int64_t count = 0;  ///< 0: not given
  int line = 0, column = 0;

  /// At t of [0, 1], rounded to six digits, and to a whole number where the option is one.
  config::Value at(double t, const config::Option& option) const;
};
/// { linear = [first, last], count = n } or { log = [first, last], count = n }; empty (and a
/// problem) for anything else.
std::optional<Range> read_range(const config::Option& option, const config::TomlNode& node,
                                bool counted, Problems& problems);
/// The values of a list or of a range, each checked; empty where something is wrong, which is then
/// a problem.
std::vector<config::Value> read_values(const config::Option& option, const config::TomlNode& node,
                                       Problems& problems);

/// [random]: what draw number `index` gives this key. Depends on its arguments only.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index, std::string_view key);
/// The rows of [random].
std::optional<Axis> read_random(const config::TomlEntry& block, Problems& problems);

/// The axes of [[list]], [zip] and [grid], none of which is empty.
std::optional<Axis> read_list(const config::TomlEntry& block, Problems& problems);
std::optional<Axis> read_zip(const config::TomlEntry& block, Problems& problems);
std::vector<Axis> read_grid(const config::TomlEntry& block, Problems& problems);
Settings read_common(const config::TomlEntry& block, Problems& problems);
std::vector<Exclusion> read_exclusions(const config::TomlEntry& block, Problems& problems);

/// Whether a point with these settings is excluded.
bool fits(const Exclusion& exclusion, const Settings& settings);

/// The tables of [[name]]; anything else is a problem.
std::vector<const config::TomlTable*> tables_of(const config::TomlEntry& block, Problems& problems);
/// The block as one table; null (and a problem) where it is something else.
const config::TomlTable* table_of(const config::TomlEntry& block, Problems& problems);

/// Slurm's forms of a duration: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S. Empty for anything else,
/// and for nothing.
std::optional<std::int64_t> seconds_of(std::string_view text);
/// "01:30:00", "2-00:00:00".
std::string time_text(std::int64_t seconds);

}  // namespace tessera::sweep
