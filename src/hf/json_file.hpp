// SPDX-License-Identifier: Apache-2.0
// JSON files of a Hugging Face folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/json.hpp"

namespace tessera::hf {

inline nlohmann::ordered_json id_json(std::optional<int> id) {
  return id ? nlohmann::ordered_json(*id) : nlohmann::ordered_json();
}

/// Throws Error(environment).
inline void write_json_file(const std::filesystem::path& file, const nlohmann::ordered_json& json) {
  write_file_atomically(file, json_text(json, 2) + "\n");
}

}  // namespace tessera::hf
