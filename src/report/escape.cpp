// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tessera/base/utf8.hpp"
#include "tessera/report/page.hpp"

namespace tessera::report {

namespace {

/// Length of the character at the front of `text`; 0 where it is none that XML may hold.
std::size_t valid_sequence(std::string_view text) {
  const CodePoint code = first_code_point(text);
  const bool control =
      code.value < 0x20 && code.value != '\t' && code.value != '\n' && code.value != '\r';
  const bool no_character = code.value == 0xFFFE || code.value == 0xFFFF;
  return control || no_character ? 0 : code.bytes;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = valid_sequence(text);
    switch (length == 0 ? '\0' : text.front()) {
      case '\0':
        out += "\xef\xbf\xbd";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

}  // namespace tessera::report
