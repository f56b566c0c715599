// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/tokenizer_record.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/json.hpp"

namespace tessera::data {

std::string tokenizer_record(std::uint64_t content_hash) {
  return content_hash == 0 ? "" : fmt::format("{:016x}", content_hash);
}

std::string recorded_tokenizer(std::string_view state) {
  const nlohmann::json json = parse_json(state);
  const bool has = json.is_object() && json.contains(kTokenizerKey);
  return has && json[kTokenizerKey].is_string() ? json[kTokenizerKey].get<std::string>() : "";
}

bool other_tokenizer(std::string_view one, std::string_view other) {
  return !one.empty() && !other.empty() && one != other;
}

}  // namespace tessera::data
