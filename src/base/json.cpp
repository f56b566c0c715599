// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/json.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace tessera {
namespace {

template <class Json>
std::optional<std::int64_t> whole_number_of(const Json& value, std::int64_t least,
                                            std::int64_t most) {
  const bool fits = value.is_number_unsigned()
                        ? std::cmp_less_equal(value.template get<std::uint64_t>(), most)
                        : value.is_number_integer();
  if (!fits) return std::nullopt;
  const auto number = value.template get<std::int64_t>();
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text.begin(), text.end(), nullptr,
                                       /*allow_exceptions=*/false);
}

nlohmann::json parse_valid_json(std::string_view text) {
  return nlohmann::json::parse(text.begin(), text.end());
}

std::optional<std::int64_t> whole_number(const nlohmann::json& value, std::int64_t least,
                                         std::int64_t most) {
  return whole_number_of(value, least, most);
}

std::optional<std::int64_t> whole_number(const nlohmann::ordered_json& value, std::int64_t least,
                                         std::int64_t most) {
  return whole_number_of(value, least, most);
}

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tessera
