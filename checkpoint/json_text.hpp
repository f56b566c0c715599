// SPDX-License-Identifier: Apache-2.0
// JSON from files nobody vouches for: syntax errors, repeated keys and wrong types become an Error
// that names the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

/// Where a text came from and which kind of error its faults are.
struct TextSource {
  std::filesystem::path path;
  ExitCode kind;
  /// "FILE is damaged (WHY)".
  [[noreturn]] void damaged(std::string_view why) const;
};

nlohmann::json parse_json(std::string_view text, const TextSource& source);

/// Typed access; a missing key or a value of another type is `source.damaged`.
const nlohmann::json& member(const nlohmann::json& object, const char* key,
                             const TextSource& source);
std::string text_member(const nlohmann::json& object, const char* key, const TextSource& source);
/// A whole number in [0, 2^62].
std::int64_t to_count(const nlohmann::json& value, const char* what, const TextSource& source);
std::int64_t count_member(const nlohmann::json& object, const char* key, const TextSource& source);
/// At most 32 dimensions, as HDF5.
Shape to_shape(const nlohmann::json& value, const TextSource& source);

}  // namespace tessera::checkpoint
