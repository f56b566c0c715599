// SPDX-License-Identifier: Apache-2.0
// A job while it is being read: values, where each came from, and all that is wrong with them.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/option_table.hpp"
#include "tessera/config/problem.hpp"

namespace tessera::config {

struct Draft : Findings {
  JobConfig job;
  std::map<std::string, std::string> derived;  ///< origins of values that reading itself set
  std::vector<std::string> warnings;

  /// Stores a value, or complains: wrong value, or written twice in the same source.
  void set(const Option& option, Value value, const Place& place);
  /// Complains of a value that was not taken, or of a word that is not a key; `meant` is the key or
  /// section that it was probably for.
  void complain_of_misread(const Place& place, std::string text,
                           const std::optional<std::string>& meant);
  /// Warns of what follows from the values of these keys, unless one of them was misread.
  void warn_of(std::initializer_list<std::string_view> keys, std::string text);
  /// Finding what was meant by an unknown word costs a walk over all keys: not done for the
  /// thousands of a hostile file.
  bool suggests() const { return problems.size() < 20; }
};

/// Reads a TOML file into the draft. The only user of toml++.
void read_toml_file(const std::string& path, Draft& draft);

/// Bounds what the parser, which recurses, is given; complains and returns false when the text is
/// beyond them.
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

/// Names of data become paths: of what is in TESSERA_DATA, or of the sample text that comes with
/// Tessera.
void find_data(Draft& draft);
/// What one key implies for another: old names, float64, warm-up longer than the schedule.
void derive(Draft& draft);
/// Values that do not have the form that their key asks for. What keys say together is component
/// plan's to check.
void check_values(Draft& draft);
/// Appends the one warning that lists the keys that change nothing, each with the reason.
void warn_of_harmless(Draft& draft);

}  // namespace tessera::config
