// SPDX-License-Identifier: Apache-2.0
// JSON to text and back, compiled once: nlohmann's parser and writer cost each file that uses them
// 2 to 4 s of compile time.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

/// The value of a JSON text. Where the text is not valid, the value's is_discarded() is true.
nlohmann::json parse_json(std::string_view text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);

/// The same, but throws nlohmann::json::parse_error, which says where the text is not valid.
nlohmann::json parse_valid_json(std::string_view text);

/// The value, if it is a whole number in [least, most]. json's get() converts other numbers too,
/// which is undefined for 1e300, and cuts large ones off.
std::optional<std::int64_t> whole_number(const nlohmann::json& value, std::int64_t least,
                                         std::int64_t most);
std::optional<std::int64_t> whole_number(const nlohmann::ordered_json& value, std::int64_t least,
                                         std::int64_t most);

/// The value as text: in one line, or with `indent` blanks for each level. Bytes that are not UTF-8
/// become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace tessera
