// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>

namespace tessera::config {

namespace {

constexpr std::size_t kProblemsShown = 100;

/// Is this the key, or a key of this section?
bool holds(std::string_view key_or_section, std::string_view key) {
  return key.starts_with(key_or_section) &&
         (key.size() == key_or_section.size() || key[key_or_section.size()] == '.');
}

/// File first, line by line; then flags as typed; then what only defaults are to blame for.
auto reading_order(const Problem& problem) {
  const Place& p = problem.place;
  const int source = p.in_file() ? 0 : p.is_default() ? 2 : 1;
  return std::tuple(source, p.line, p.column, p.order);
}

}  // namespace

std::string Place::exact() const {
  if (is_default()) return "default";
  return in_file() ? fmt::format("{}:{}:{}", label, line, column) : label;
}

std::string Place::origin() const {
  if (is_default()) return "default";
  return in_file() ? fmt::format("{}:{}", label, line) : "command line";
}

void Findings::complain_of(std::initializer_list<std::string_view> keys, std::string text,
                           ExitCode code) {
  if (!understood(keys)) return;
  const auto found =
      std::ranges::find_if(keys, [this](std::string_view key) { return written(key); });
  const Place place = place_of(found == keys.end() ? *keys.begin() : *found);
  problems.push_back({place, std::move(text), code, {keys.begin(), keys.end()}});
}

bool Findings::obey(std::initializer_list<std::string_view> keys,
                    const std::function<void()>& rule) {
  if (!understood(keys)) return false;
  try {
    rule();
    return true;
  } catch (const Error& error) {
    complain_of(keys, error.what(), error.code());
    return false;
  }
}

Place Findings::place_of(std::string_view key) const {
  const auto found = places.find(key);
  return found == places.end() ? Place{} : found->second;
}

bool Findings::understood(std::initializer_list<std::string_view> keys) const {
  return std::ranges::none_of(problems, [&](const Problem& problem) {
    return problem.misread && !problem.about.empty() &&
           std::ranges::any_of(
               keys, [&](std::string_view key) { return holds(problem.about.front(), key); });
  });
}

bool Findings::blames(std::string_view key) const {
  return std::ranges::any_of(problems, [&](const Problem& problem) {
    return !problem.about.empty() && problem.about.front() == key;
  });
}

std::string message_of(const std::vector<Problem>& problems) {
  std::vector<Problem> sorted = problems;
  std::ranges::stable_sort(sorted, {}, reading_order);
  const auto line = [](const Problem& p) {
    return p.place.is_default() ? p.text : fmt::format("{}: {}", p.place.exact(), p.text);
  };
  if (sorted.size() == 1) return line(sorted.front());
  std::string text = fmt::format("{} problems in the configuration", sorted.size());
  for (const Problem& p : std::span(sorted).first(std::min(kProblemsShown, sorted.size())))
    text += "\n  " + line(p);
  if (sorted.size() > kProblemsShown)
    text += fmt::format("\n  ... and {} more", sorted.size() - kProblemsShown);
  return text;
}

ExitCode code_of(const std::vector<Problem>& problems) {
  const auto usage = [](const Problem& problem) { return problem.code == ExitCode::usage; };
  return problems.empty() || std::ranges::any_of(problems, usage) ? ExitCode::usage
                                                                  : problems.front().code;
}

void throw_if_wrong(const std::vector<Problem>& problems) {
  if (!problems.empty()) throw Error(code_of(problems), message_of(problems));
}

}  // namespace tessera::config
