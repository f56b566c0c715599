// SPDX-License-Identifier: Apache-2.0
// Reads the files of machines and stacks: finds them by name, and takes their entries one by one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/toml_tree.hpp"

namespace tessera::planner {

/// Names of share/tessera/`folder`/NAME.toml, sorted.
std::vector<std::string> names_in(const char* folder);

/// The file of `name`; `kind` is "machine" or "stack". Throws Error(usage) that lists the names.
std::string file_of(const char* kind, const char* folder, const std::string& name);

/// Entries of a file as numbers, words and lists. Each function throws Error(usage) with file and
/// line for a value of another kind.
class FactsFile {
 public:
  explicit FactsFile(std::string file);

  const std::string& file() const { return file_; }
  const config::TomlTable& entries() const { return entries_; }
  const config::TomlTable& table(const config::TomlEntry& entry) const;
  double number(const config::TomlEntry& entry) const;
  /// A whole number from 1.
  int count(const config::TomlEntry& entry) const;
  bool truth(const config::TomlEntry& entry) const;
  const std::string& word(const config::TomlEntry& entry) const;
  /// Exactly two numbers.
  std::pair<double, double> pair(const config::TomlEntry& entry) const;
  /// Throws Error(usage): there is no such key. `known`: those that there are.
  [[noreturn]] void unknown(const config::TomlEntry& entry,
                            const std::vector<std::string>& known) const;
  [[noreturn]] void refuse(const config::TomlEntry& entry, const std::string& why) const;

 private:
  std::string file_;
  config::TomlTable entries_;
};

}  // namespace tessera::planner
