// SPDX-License-Identifier: Apache-2.0
#include "help_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tessera::app {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kWords{
    {{"Subcommands:", "Commands:"},
     {"SUBCOMMAND", "COMMAND"},
     {"Positionals:", "Arguments:"},
     {" REQUIRED", " (required)"},
     {"Print this help message and exit", "print this help"}}};

std::string in_our_words(std::string text) {
  for (const auto& [theirs, ours] : kWords)
    for (std::size_t at = 0; (at = text.find(theirs, at)) != text.npos; at += ours.size())
      text.replace(at, theirs.size(), ours);
  return text;
}

/// Where the description of "  --flag TEXT    description" begins; the indentation of a line
/// without one.
std::size_t hanging_indent(std::string_view line) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  if (first == 0) return 0;
  const std::size_t gap = line.find("  ", first);
  const std::size_t described = gap == line.npos ? line.npos : line.find_first_not_of(' ', gap);
  return described == line.npos ? first : described;
}

void add_wrapped(std::string& out, std::string line, std::size_t columns) {
  const std::string below(hanging_indent(line), ' ');
  while (line.size() > columns) {
    const std::size_t cut = line.rfind(' ', columns);
    if (cut == line.npos || cut <= below.size()) break;  // one word that is too long
    out += line.substr(0, cut) + "\n";
    line = below + line.substr(cut + 1);
  }
  out += line + "\n";
}

}  // namespace

std::string help_text(std::string_view raw, std::size_t columns) {
  const std::string text = in_our_words(std::string(raw));
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    add_wrapped(out, text.substr(begin, end - begin), columns);
    begin = end + 1;
  }
  return out;
}

}  // namespace tessera::app
