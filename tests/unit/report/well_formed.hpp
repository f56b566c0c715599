// SPDX-License-Identifier: Apache-2.0
// What tests of pictures and pages ask of their text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::report {

/// Not gmock's HasSubstr, which prints the whole picture when it fails.
inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// Elements of HTML that have no end tag.
inline bool is_void(std::string_view name) {
  return name == "meta" || name == "link" || name == "img" || name == "!doctype";
}

/// Every tag is closed in its order, and no attribute holds a raw '<': enough of XML to catch a
/// slip of the writer.
inline bool well_formed(std::string_view text) {
  std::vector<std::string> open;
  for (auto at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    const auto end = text.find('>', at);
    if (end == text.npos || text.substr(at + 1, end - at - 1).find('<') != text.npos) return false;
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    const bool closes = tag.front() == '/';
    const std::string name(
        tag.substr(closes ? 1 : 0, tag.find_first_of(" /", 1) - (closes ? 1 : 0)));
    if (closes) {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/' && !is_void(name)) {
      open.push_back(name);
    }
  }
  return open.empty();
}

}  // namespace tessera::report
