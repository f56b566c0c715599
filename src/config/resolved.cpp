// SPDX-License-Identifier: Apache-2.0
// A resolved job as text: TOML for people and for the next run, JSON for the other ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/config/resolve.hpp"

namespace tessera::config {

namespace {

using nlohmann::json;

constexpr std::size_t kCommentColumn = 56;

/// A comment of TOML ends with its line, and takes no control characters.
std::string comment(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

/// "steps = 100      # job.toml:12"; an absent value is a comment, for TOML has no null.
std::string toml_line(const Option& option, const Resolved& resolved) {
  const Value value = get(option, resolved.job);
  const bool absent = std::holds_alternative<std::monostate>(value) &&
                      default_of(option) == value && !option.looked_up;
  const std::string shown =
      absent || !std::holds_alternative<std::monostate>(value) ? to_toml(value) : "\"none\"";
  const std::string text = fmt::format("{}{} = {}", absent ? "# " : "", leaf_of(option.key), shown);
  return fmt::format("{:<{}}  # {}\n", text, kCommentColumn, comment(resolved.origin(option.key)));
}

json to_json(const Value& value) {
  if (const auto* number = std::get_if<double>(&value); number && !std::isfinite(*number))
    return to_toml(value);
  return std::visit(
      [](const auto& v) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return nullptr;
        else
          return v;
      },
      value);
}

Value from_json(const json& j, const Option& option) {
  if (j.is_null()) return {};
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<std::int64_t>();
  if (j.is_number_float()) return j.get<double>();
  if (j.is_string())
    return type_name(option) == "number" ? value_from_text(option, j.get<std::string>())
                                         : Value{j.get<std::string>()};
  if (type_name(option) == "list of lists") return j.get<std::vector<Strings>>();
  return j.get<Strings>();
}

Resolved read(const json& j) {
  Resolved resolved;
  for (const Option& option : options()) {
    const json& entry = j.at("keys").at(std::string(option.key));
    if (auto wrong = assign(option, resolved.job, from_json(entry.at("value"), option)))
      fail(ExitCode::environment, "{} {}", option.key, *wrong);
    resolved.origins[std::string(option.key)] = entry.at("origin").get<std::string>();
  }
  resolved.warnings = j.at("warnings").get<std::vector<std::string>>();
  return resolved;
}

}  // namespace

const std::string& Resolved::origin(std::string_view key) const {
  static const std::string kDefault = "default";
  const Option* option = find_option(key);
  TESSERA_EXPECT(option, "no option is called '{}'", key);
  const auto found = origins.find(std::string(option->key));
  return found == origins.end() ? kDefault : found->second;
}

std::string Resolved::to_toml() const {
  std::string text;
  std::string_view section;
  for (const Option& option : options()) {
    if (section_of(option.key) != section) {
      section = section_of(option.key);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += toml_line(option, *this);
  }
  return text;
}

std::string Resolved::serialize() const {
  json keys;
  for (const Option& option : options())
    keys[std::string(option.key)] = {{"value", to_json(get(option, job))},
                                     {"origin", origin(option.key)}};
  return json_text(json{{"keys", std::move(keys)}, {"warnings", warnings}});
}

Resolved Resolved::deserialize(std::string_view text) {
  try {
    return read(parse_valid_json(text));
  } catch (const json::exception& error) {
    fail(ExitCode::environment,
         "the configuration that rank 0 sent cannot be read ({}); are all ranks the same program?",
         error.what());
  }
}

}  // namespace tessera::config
