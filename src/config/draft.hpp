// A job while it is being read: values, where each came from, and all that is wrong with them.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/option_table.hpp"

namespace tessera::config {

/// Where a value was written. A default has no label.
struct Place {
  std::string label{};  ///< the file as the user named it, or the flag as typed
  int line = 0;         ///< from 1 in a file; 0 for flags
  int column = 0;
  int order = 0;  ///< of flags on the command line

  bool in_file() const { return line > 0; }
  bool is_default() const { return label.empty(); }
  std::string exact() const;   ///< "job.toml:12:3", "--training.steps", "default"
  std::string origin() const;  ///< "job.toml:12", "command line", "default"
};

struct Problem {
  Place place;
  std::string text;
};

struct Draft {
  JobConfig job;
  std::map<std::string, Place, std::less<>> places;  ///< of the keys that were written somewhere
  std::map<std::string, std::string> derived;        ///< origins of values that resolve() itself set
  std::vector<Problem> problems;
  std::vector<std::string> warnings;

  void complain(Place place, std::string text) { problems.push_back({std::move(place), std::move(text)}); }
  /// Complains about the first of the keys that was written; if none was, about the first one's default.
  void complain_of(std::initializer_list<std::string_view> keys, std::string text);
  /// Stores a value, or complains: wrong value, or written twice in the same source.
  void set(const Option& option, Value value, const Place& place);
  /// Place of a key; the default's when it was not written.
  Place place_of(std::string_view key) const;
  bool written(std::string_view key) const { return places.contains(key); }
  /// Finding what was meant by an unknown word costs a walk over all keys: not done for the thousands of a hostile
  /// file.
  bool suggests() const { return problems.size() < 20; }
};

/// Text from a file or the command line, made fit for a message: at most 80 bytes, control characters as '?'.
std::string shown(std::string_view text);

/// "unknown key 'x.y'; did you mean ...?" or the same of a section.
std::string unknown_key(std::string_view key, const Draft& draft);
std::string unknown_section(std::string_view name, const Draft& draft);

/// Throws Error(usage) with every problem, in the order of file and command line, if there is one.
void throw_if_wrong(const Draft& draft);

/// Reads a TOML file into the draft. The only user of toml++.
void read_toml_file(const std::string& path, Draft& draft);

/// Bounds what the parser, which recurses, is given; complains and returns false when the text is beyond them.
bool within_bounds(std::string_view text, const std::string& path, Draft& draft);

/// Splits the command line; the file named in it is read before the flags are applied.
struct Flag {
  const Option* option;
  Value value;
  Place place;
};
struct CommandLine {
  std::string file;
  Place file_place;
  std::vector<Flag> flags;
};
CommandLine read_command_line(const std::vector<std::string>& args, Draft& draft);

/// Names of data become paths: of what lies in TESSERA_DATA, or of the sample text that comes with Tessera.
void find_data(Draft& draft);
/// What one key implies for another: old names, float64, warm-up longer than the schedule.
void derive(Draft& draft);
/// Values that contradict each other.
void check_combinations(Draft& draft);
/// Those about training and validation data.
void check_data(Draft& draft);
/// Appends the one warning that lists what Tessera does not act on.
void warn_of_unsupported(Draft& draft);

}  // namespace tessera::config
