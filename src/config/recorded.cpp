// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/config/option_table.hpp"

namespace tessera::config {
namespace {

std::string_view without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == text.npos ? std::string_view{}
                            : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::optional<std::string> recorded(std::string_view toml, std::string_view key) {
  const std::string header = fmt::format("[{}]", section_of(key)),
                    start = fmt::format("{} = ", leaf_of(key));
  for (bool inside = false; !toml.empty();) {
    const std::string_view line = toml.substr(0, toml.find('\n'));
    toml.remove_prefix(std::min(toml.size(), line.size() + 1));
    if (line.starts_with('[')) inside = without_blanks(line) == header;
    if (!inside || !line.starts_with(start)) continue;
    return std::string(
        without_blanks(line.substr(start.size(), line.rfind("  # ") - start.size())));
  }
  return std::nullopt;
}

std::string recorded_text(std::string_view toml, std::string_view key) {
  const std::string value = recorded(toml, key).value_or("");
  return value.size() >= 2 ? value.substr(1, value.size() - 2) : "";
}

std::string differences(std::string_view toml, std::string_view now,
                        const std::vector<std::string_view>& keys) {
  std::string text;
  for (const std::string_view key : keys) {
    const std::string before = recorded(toml, key).value_or("none"),
                      value = recorded(now, key).value_or("none");
    if (before != value)
      text += fmt::format("{}{} is {}, was {}", text.empty() ? "" : ", ", key, value, before);
  }
  return text;
}

}  // namespace tessera::config
