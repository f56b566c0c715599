// SPDX-License-Identifier: Apache-2.0
// Plain text cut into documents, and hard-wrapped lines joined again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regex.hpp"
#include "tessera/base/shard.hpp"

namespace tessera::data {

/// Calls `take(offset, line)` for each line, without its line feed.
template <class Take>
void for_each_line(std::string_view text, Take&& take) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    take(begin, text.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// Nothing but ASCII white space.
bool is_blank(std::string_view text);

std::vector<Range> whole_text(std::string_view text);
std::vector<Range> nonblank_lines(std::string_view text);
std::vector<Range> paragraphs(std::string_view text);
/// Each line that matches begins a document; what is before the first is one too, if it is not
/// blank.
std::vector<Range> split_at_lines(std::string_view text, const Regex& first_line);

/// Unindented lines continue the line above, except after an empty one; indentation and empty lines
/// go.
std::string unwrap_lines(std::string_view text);

}  // namespace tessera::data
