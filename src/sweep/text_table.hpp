// SPDX-License-Identifier: Apache-2.0
// Cells in columns as wide as their widest.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace tessera::sweep {

using TextTable = std::vector<std::vector<std::string>>;

/// Lines that all have as many cells as the first.
inline std::string aligned(const TextTable& lines) {
  std::vector<std::size_t> widths(lines.empty() ? 0 : lines.front().size());
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool last = i + 1 == line.size();
      text += line[i] + (last ? "\n" : std::string(widths[i] + 2 - line[i].size(), ' '));
    }
  return text;
}

}  // namespace tessera::sweep
