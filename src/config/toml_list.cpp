// SPDX-License-Identifier: Apache-2.0
#include "toml_list.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include "draft.hpp"

namespace tessera::config {
namespace {

std::optional<Strings> strings_of(const toml::array& array) {
  Strings out;
  for (const toml::node& item : array) {
    const auto text = item.value_exact<std::string>();
    if (!text) return {};
    out.push_back(*text);
  }
  return out;
}

std::optional<std::vector<Strings>> lists_of(const toml::array& array) {
  std::vector<Strings> out;
  for (const toml::node& item : array) {
    const toml::array* inner = item.as_array();
    auto list = inner ? strings_of(*inner) : std::nullopt;
    if (!list) return {};
    out.push_back(*std::move(list));
  }
  return out;
}

}  // namespace

std::optional<Value> toml_list(std::string_view text) {
  const std::string line = fmt::format("list = {}", text);
  if (Draft draft; !within_bounds(line, "", draft)) return {};
  try {
    const toml::table parsed = toml::parse(line);
    const toml::array* array = parsed.size() == 1 ? parsed["list"].as_array() : nullptr;
    if (!array) return {};
    if (auto strings = strings_of(*array)) return *std::move(strings);
    if (auto lists = lists_of(*array)) return *std::move(lists);
  } catch (const toml::parse_error&) {
    return {};
  }
  return {};
}

}  // namespace tessera::config
