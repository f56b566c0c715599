#include "draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>

#include "tessera/base/error.hpp"
#include "tessera/config/suggest.hpp"

namespace tessera::config {

namespace {

constexpr std::size_t kProblemsShown = 100, kWordShown = 80;

/// File first, line by line; then flags as typed; then what only defaults are to blame for.
auto reading_order(const Problem& problem) {
  const Place& p = problem.place;
  const int source = p.in_file() ? 0 : p.is_default() ? 2 : 1;
  return std::tuple(source, p.line, p.column, p.order);
}

/// A flag names its key itself, unless it is spelt in another way.
std::string about(const Option& option, const Place& place) {
  return place.in_file() || place.label != fmt::format("--{}", option.key) ? fmt::format("{} ", option.key) : "";
}

Strings sections() {
  std::set<std::string> names;
  for (const Option& option : options())
    for (auto s = section_of(option.key); !s.empty(); s = section_of(s)) names.emplace(s);
  return {names.begin(), names.end()};
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

void Draft::set(const Option& option, Value value, const Place& place) {
  const auto before = places.find(option.key);
  if (before != places.end() && before->second.in_file() == place.in_file())
    return complain(place,
                    fmt::format("{} is given twice (first at {}); keep one", option.key, before->second.exact()));
  places.insert_or_assign(std::string(option.key), place);
  if (auto wrong = assign(option, job, std::move(value)))
    complain(place, fmt::format("{}{}", about(option, place), *wrong));
}

void Draft::complain_of(std::initializer_list<std::string_view> keys, std::string text) {
  const auto found = std::ranges::find_if(keys, [this](std::string_view key) { return written(key); });
  complain(place_of(found == keys.end() ? *keys.begin() : *found), std::move(text));
}

Place Draft::place_of(std::string_view key) const {
  const auto found = places.find(key);
  return found == places.end() ? Place{} : found->second;
}

std::string shown(std::string_view text) {
  std::string out(text.substr(0, kWordShown));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.size() > kWordShown ? out + "..." : out;
}

std::string unknown_key(std::string_view key, const Draft& draft) {
  const auto near = draft.suggests() ? closest_key(key) : std::nullopt;
  return fmt::format("unknown key '{}'{}", shown(key),
                     near ? fmt::format("; did you mean '{}'?", *near) : "; `tessera config keys` lists all keys");
}

std::string unknown_section(std::string_view name, const Draft& draft) {
  const std::string hint = draft.suggests() ? did_you_mean(name, sections()) : "";
  return fmt::format("unknown section '{}'{}", shown(name),
                     hint.empty() ? "; `tessera config keys` lists all keys" : hint);
}

void throw_if_wrong(const Draft& draft) {
  if (draft.problems.empty()) return;
  std::vector<Problem> sorted = draft.problems;
  std::ranges::stable_sort(sorted, {}, reading_order);
  const auto line = [](const Problem& p) { return fmt::format("{}: {}", p.place.exact(), p.text); };
  if (sorted.size() == 1) throw Error(ExitCode::usage, line(sorted.front()));
  std::string text = fmt::format("{} problems in the configuration", sorted.size());
  for (const Problem& p : std::span(sorted).first(std::min(kProblemsShown, sorted.size()))) text += "\n  " + line(p);
  if (sorted.size() > kProblemsShown) text += fmt::format("\n  ... and {} more", sorted.size() - kProblemsShown);
  throw Error(ExitCode::usage, text);
}

}  // namespace tessera::config
