// SPDX-License-Identifier: Apache-2.0
// What is wrong with a job, each problem with the place where it was written.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::config {

/// Text from a file or the command line, made fit for a message: at most 80 bytes, control
/// characters as '?'.
std::string shown(std::string_view text);

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
  ExitCode code = ExitCode::usage;  ///< with which a run of the job would end
  /// keys of the rule that is broken; the first one is to blame
  std::vector<std::string> about = {};
  bool misread = false;  ///< the key or section in `about` does not have the intended value
};

/// Where a job's values were written, and what is wrong with them.
struct Findings {
  std::map<std::string, Place, std::less<>> places;  ///< of the keys that were written somewhere
  std::vector<Problem> problems;
  /// false: the file was not read to its end, and what it says elsewhere is not known
  bool whole = true;

  void complain(Place place, std::string text) {
    problems.push_back({std::move(place), std::move(text)});
  }
  /// Complains that the values of these keys break a rule, at the first key that was written, or at
  /// the first default. Says nothing if one of them was misread: a value that the user did not
  /// write breaks no rule.
  void complain_of(std::initializer_list<std::string_view> keys, std::string text,
                   ExitCode code = ExitCode::usage);
  /// Complains of the keys, with the Error's code, if `rule` throws Error. Does not ask it where
  /// one of them was misread. True if it holds.
  bool obey(std::initializer_list<std::string_view> keys, const std::function<void()>& rule);
  /// Place of a key; the default's when it was not written.
  Place place_of(std::string_view key) const;
  bool written(std::string_view key) const { return places.contains(key); }
  /// Do all of these keys have their intended values?
  bool understood(std::initializer_list<std::string_view> keys) const;
  /// Is this key to blame for a problem yet?
  bool blames(std::string_view key) const;
};

/// One problem as "place: text"; several one a line under a headline, in the order of file and
/// command line.
std::string message_of(const std::vector<Problem>& problems);
/// With what a program ends that found them: `usage` if one of them is of it, else the first one's
/// code.
ExitCode code_of(const std::vector<Problem>& problems);
/// Throws one Error with that message and code if there is a problem.
void throw_if_wrong(const std::vector<Problem>& problems);

}  // namespace tessera::config
