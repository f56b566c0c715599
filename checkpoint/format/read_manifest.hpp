// SPDX-License-Identifier: Apache-2.0
// The manifest of a step folder, from disk.
#pragma once

#include <filesystem>
#include <string>

#include "format/manifest.hpp"

namespace tessera::checkpoint {

struct ReadManifest {
  std::string text;
  Manifest manifest;
};

/// Reads and checks manifest.json; it must be of the step that the folder is named after.
/// Error(checkpoint).
ReadManifest read_manifest(const std::filesystem::path& step_folder);

/// The same, and that each file it names is there and as long as it was written. Error(checkpoint).
ReadManifest read_complete_manifest(const std::filesystem::path& step_folder);

}  // namespace tessera::checkpoint
