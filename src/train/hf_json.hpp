// SPDX-License-Identifier: Apache-2.0
// JSON files of a Hugging Face folder.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"

namespace tessera::train {

inline nlohmann::ordered_json id_json(std::optional<int> id) {
  return id ? nlohmann::ordered_json(*id) : nlohmann::ordered_json();
}

/// Throws Error(environment).
inline void write_json_file(const std::filesystem::path& file, const nlohmann::ordered_json& json) {
  std::ofstream out(file);
  out << json_text(json, 2) << "\n";
  require(out.flush().good(), ExitCode::environment,
          "cannot write '{}'; check its permissions and the space on the disk", file.string());
}

}  // namespace tessera::train
