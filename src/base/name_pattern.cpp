// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/name_pattern.hpp"

#include <algorithm>
#include <map>
#include <regex>

#include "tessera/base/error.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera {

bool matches(const std::string& pattern, std::string_view name) {
  // A job has few patterns, which meet every tensor's name; to compile one takes longer than to
  // search.
  thread_local std::map<std::string, std::regex> compiled;
  auto found = compiled.find(pattern);
  if (found == compiled.end()) found = compiled.emplace(pattern, std::regex(pattern)).first;
  return std::regex_search(name.begin(), name.end(), found->second);
}

bool is_of_module(std::string_view param, std::string_view module) {
  return fmt::format(".{}.", param).find(fmt::format(".{}.", module)) != std::string::npos;
}

void require_pattern(const std::string& pattern, std::string_view what) {
  try {
    const std::regex compiled(pattern);
  } catch (const std::regex_error& error) {
    fail(ExitCode::usage, "{}: \"{}\" is not a regular expression ({})", what, pattern,
         error.what());
  }
}

void require_matches(const std::string& pattern, const std::vector<std::string>& names,
                     std::string_view what) {
  require_pattern(pattern, what);
  if (std::ranges::any_of(names, [&](const std::string& name) { return matches(pattern, name); }))
    return;
  std::string plain = pattern;
  std::erase_if(plain, [](char c) { return c == '\\' || c == '$' || c == '^'; });
  fail(ExitCode::usage, "{}: \"{}\" matches nothing{}; there are {} .. {}", what, pattern,
       did_you_mean(plain, names), names.front(), names.back());
}

}  // namespace tessera
