// SPDX-License-Identifier: Apache-2.0
// Typed access to JSON that people or other programs wrote: what does not fit becomes one clear
// Error(data).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tessera::data {

/// Content of a whole file; throws Error(data) when it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// A value and the path to it ("tokenizer.json, model.vocab"); cheap, and valid as long as the
/// document.
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string file)
      : JsonNode(value, std::move(file), true) {}

  bool is_null() const { return value_->is_null(); }
  bool is_string() const { return value_->is_string(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }

  /// Member of an object; a null node when it is not there. Throws when this is no object.
  JsonNode operator[](const std::string& key) const;
  /// Element of an array.
  JsonNode operator[](std::size_t index) const;
  std::size_t size() const { return value_->size(); }

  const std::string& string() const;
  bool boolean(bool if_absent) const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  /// This, checked to be an object or an array.
  const nlohmann::json& object() const;
  const nlohmann::json& array() const;

  const std::string& where() const { return where_; }
  /// Throws Error(data): "WHERE: what".
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  JsonNode(const nlohmann::json& value, std::string where, bool root)
      : value_(&value), where_(std::move(where)), root_(root) {}

  const nlohmann::json* value_;
  std::string where_;
  bool root_;
};

/// Parses `text`; throws Error(data) that names `where` and the place of the mistake.
nlohmann::json parse_json(std::string_view text, const std::string& where);

}  // namespace tessera::data
