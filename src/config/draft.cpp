// SPDX-License-Identifier: Apache-2.0
#include "draft.hpp"

#include <fmt/format.h>

namespace tessera::config {

namespace {

constexpr std::size_t kWordShown = 80;

/// A flag names its key itself, unless it is spelt in another way.
std::string subject(const Option& option, const Place& place) {
  return place.in_file() || place.label != fmt::format("--{}", option.key)
             ? fmt::format("{} ", option.key)
             : "";
}

}  // namespace

void Draft::set(const Option& option, Value value, const Place& place) {
  const auto before = places.find(option.key);
  if (before != places.end() && before->second.in_file() == place.in_file())
    return complain_of_misread(place,
                               fmt::format("{} is given twice (first at {}); keep one", option.key,
                                           before->second.exact()),
                               std::string(option.key));
  places.insert_or_assign(std::string(option.key), place);
  if (auto wrong = assign(option, job, std::move(value)))
    complain_of_misread(place, fmt::format("{}{}", subject(option, place), *wrong),
                        std::string(option.key));
}

void Draft::complain_of_misread(const Place& place, std::string text,
                                const std::optional<std::string>& meant) {
  complain(place, std::move(text));
  if (meant) problems.back().about = {*meant};
  problems.back().misread = true;
}

void Draft::warn_of(std::initializer_list<std::string_view> keys, std::string text) {
  if (understood(keys)) warnings.push_back(std::move(text));
}

std::string shown(std::string_view text) {
  std::string out(text.substr(0, kWordShown));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text.size() > kWordShown ? out + "..." : out;
}

}  // namespace tessera::config
