// SPDX-License-Identifier: Apache-2.0
#include "document_split.hpp"

#include <algorithm>

namespace tessera::data {
namespace {

constexpr std::string_view kBlank = " \t\r\v\f\n";

Range range(std::size_t begin, std::size_t end) {
  return {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end - begin)};
}

std::string_view without_return(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

std::string_view strip(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(kBlank);
  return begin == line.npos ? std::string_view()
                            : line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

bool is_blank(std::string_view text) { return text.find_first_not_of(kBlank) == text.npos; }

std::vector<Range> whole_text(std::string_view text) {
  return is_blank(text) ? std::vector<Range>{} : std::vector{range(0, text.size())};
}

std::vector<Range> nonblank_lines(std::string_view text) {
  std::vector<Range> found;
  for_each_line(text, [&](std::size_t begin, std::string_view line) {
    if (!is_blank(line)) found.push_back(range(begin, begin + without_return(line).size()));
  });
  return found;
}

std::vector<Range> paragraphs(std::string_view text) {
  std::vector<Range> found;
  bool open = false;
  for_each_line(text, [&](std::size_t begin, std::string_view line) {
    const bool text_line = !is_blank(line);
    const std::size_t end = std::min(begin + line.size() + 1, text.size());
    if (text_line && open) {
      found.back().size = static_cast<std::int64_t>(end) - found.back().begin;
    } else if (text_line) {
      found.push_back(range(begin, end));
    }
    open = text_line;
  });
  return found;
}

std::vector<Range> split_at_lines(std::string_view text, const Regex& first_line) {
  std::vector<Range> found;
  std::size_t begin = 0;
  const auto close = [&](std::size_t end) {
    if (!is_blank(text.substr(begin, end - begin))) found.push_back(range(begin, end));
    begin = end;
  };
  for_each_line(text, [&](std::size_t at, std::string_view line) {
    if (first_line.matches_somewhere(without_return(line))) close(at);
  });
  close(text.size());
  return found;
}

std::string unwrap_lines(std::string_view text) {
  std::string out;
  bool after_blank = true;
  for_each_line(text, [&](std::size_t, std::string_view line) {
    const std::string_view words = strip(line);
    const bool continues = !after_blank && !words.empty() && words.data() == line.data();
    after_blank = words.empty();
    if (after_blank) return;
    if (!out.empty()) out.push_back(continues ? ' ' : '\n');
    out += words;
  });
  if (!out.empty()) out.push_back('\n');
  return out;
}

}  // namespace tessera::data
