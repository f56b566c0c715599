// SPDX-License-Identifier: Apache-2.0
// Keys of one JSON object of a config.json, with Hugging Face's defaults for those that are absent
// or null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"

namespace tessera::model {

class HfReader {
 public:
  HfReader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  bool has(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !found->is_null();
  }

  template <class T>
  T get(const char* key, T otherwise) const {
    if (!has(key)) return otherwise;
    try {
      return object_.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      fail(ExitCode::usage, "{}: \"{}\" has the wrong type ({})", where_, key,
           json_text(object_.at(key)));
    }
  }

  std::int64_t positive(const char* key, std::int64_t otherwise) const {
    return at_least(1, key, otherwise);
  }
  std::int64_t at_least(std::int64_t least, const char* key, std::int64_t otherwise) const {
    const auto value = get<std::int64_t>(key, otherwise);
    require(value >= least && value < (std::int64_t{1} << 31), ExitCode::usage,
            "{}: \"{}\" is {}; it must be a whole number from {}", where_, key, value, least);
    return value;
  }

  /// Sub-object under `key`, or null.
  const nlohmann::json* object(const char* key) const {
    if (!has(key)) return nullptr;
    require(object_.at(key).is_object(), ExitCode::usage, "{}: \"{}\" must be an object", where_,
            key);
    return &object_.at(key);
  }

  /// Refuses a feature that this family lacks here.
  void refuse(const char* key) const {
    require(!get<bool>(key, false), ExitCode::usage,
            "{}: \"{}\" = true is not supported for model_type {}", where_, key,
            get<std::string>("model_type", "llama"));
  }

 private:
  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace tessera::model
