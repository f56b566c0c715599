// SPDX-License-Identifier: Apache-2.0
#include "toml_parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace tessera::config {
namespace {

constexpr std::size_t kFileBytes = 1 << 20;
constexpr int kRepeatsShown = 50;

/// Reads little more than kFileBytes at most; what is wrong goes to the draft.
std::optional<std::string> read_text(const std::string& path, Draft& draft) {
  std::string text;
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  std::array<char, 16384> part;
  for (std::size_t bytes = 1; file && bytes > 0 && text.size() <= kFileBytes;
       text.append(part.data(), bytes))
    bytes = std::fread(part.data(), 1, part.size(), file.get());
  if (!file || std::ferror(file.get()) != 0) {
    draft.complain({path},
                   fmt::format("cannot read the configuration file: {}", std::strerror(errno)));
    return {};
  }
  if (text.size() > kFileBytes) {
    draft.complain({path},
                   fmt::format("larger than {} bytes, the limit for a job file", kFileBytes));
    return {};
  }
  return text;
}

/// Bytes [begin, end) of a line, from 1, without its newline.
std::pair<std::size_t, std::size_t> line_span(std::string_view text, std::size_t line) {
  std::size_t begin = 0;
  for (std::size_t n = 1; n < line; ++n)
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return {begin, std::min(text.find('\n', begin), text.size())};
}

/// A `key = value` on one line: without it the rest of the file means the same.
bool stands_alone(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  const auto even = [&](char open, char close) {
    return std::ranges::count(line, open) == std::ranges::count(line, close);
  };
  return first != line.npos && line[first] != '[' && even('[', ']') && even('{', '}') &&
         line.find("\"\"\"") == line.npos && line.find("'''") == line.npos;
}

/// What toml++ says of `yes`, `True`, `none` and `./data`: a first letter makes it expect a boolean
/// or a number.
bool is_of_a_bare_word(std::string_view description) {
  static constexpr std::array<std::string_view, 6> kSigns{"could not determine value type",
                                                          "boolean: ",
                                                          "expected 'nan'",
                                                          "expected 'inf'",
                                                          "decimal digit, saw '/'",
                                                          "decimal digit, saw '.'"};
  return std::ranges::any_of(
      kSigns, [&](std::string_view sign) { return description.find(sign) != sign.npos; });
}

std::string explain(std::string_view description) {
  constexpr std::string_view kPrefix = "Error while parsing ";
  if (description.starts_with(kPrefix)) description.remove_prefix(kPrefix.size());
  const char* hint =
      is_of_a_bare_word(description) ? "; strings need quotes, and booleans are true or false" : "";
  return fmt::format("not valid TOML: {}{}", description, hint);
}

/// Complains of a syntax error. A key that is written twice is blanked in `text`, and parsing can
/// continue: returns true.
bool recover(const toml::parse_error& error, const std::string& path, std::string& text,
             Draft& draft) {
  const toml::source_position& at = error.source().begin;
  const Place place{path, static_cast<int>(at.line), static_cast<int>(at.column)};
  const auto [begin, end] = line_span(text, at.line);
  const bool again = error.description().find("redefine") != std::string_view::npos;
  if (!again || !stands_alone(std::string_view(text).substr(begin, end - begin)))
    return draft.complain(place, again ? "this key or section is defined twice; keep one"
                                       : explain(error.description())),
           false;
  const std::string line = text.substr(begin, end - begin);
  const std::string key = line.substr(0, line.find('='));
  draft.complain(place, fmt::format("key '{}' is given twice in its section; keep one",
                                    shown(key.substr(0, key.find_last_not_of(" \t") + 1))));
  std::fill(text.begin() + static_cast<std::ptrdiff_t>(begin),
            text.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  return true;
}

std::optional<toml::table> parse(const std::string& path, std::string text, Draft& draft) {
  for (int repeat = 0; repeat < kRepeatsShown; ++repeat) {
    try {
      return toml::parse(text, path);
    } catch (const toml::parse_error& error) {
      if (!recover(error, path, text, draft)) return {};
    }
  }
  return {};
}

}  // namespace

std::optional<toml::table> parse_toml(const std::string& path, Draft& draft) {
  auto text = read_text(path, draft);
  if (!text || !within_bounds(*text, path, draft)) return {};
  return parse(path, std::move(*text), draft);
}

}  // namespace tessera::config
