// SPDX-License-Identifier: Apache-2.0
// A TOML file as a tree whose nodes know their line: for files that are not jobs, such as a sweep.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tessera::config {

struct TomlNode;
struct TomlEntry;
using TomlList = std::vector<TomlNode>;
using TomlTable = std::vector<TomlEntry>;  ///< in the order of the file

struct TomlNode {
  int line = 0, column = 0;  ///< from 1
  /// monostate: a date or a time, which no key takes
  std::variant<std::monostate, bool, std::int64_t, double, std::string, TomlList, TomlTable> value;
};

struct TomlEntry {
  std::string key;
  int line = 0, column = 0;  ///< of the key
  TomlNode node;
};

/// Reads a file of at most 1 MiB; a dotted key gives nested tables. Throws Error(usage) with every
/// fault of syntax and its file:line:column.
TomlTable read_toml_tree(const std::string& path);

}  // namespace tessera::config
