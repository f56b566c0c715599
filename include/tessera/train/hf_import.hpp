// SPDX-License-Identifier: Apache-2.0
// Weights from other programs as a checkpoint of Tessera's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/dtype.hpp"

namespace tessera::train {

/// Whether the folder has a config.json and weights as Hugging Face's programs write them.
bool holds_hf_weights(const std::filesystem::path& folder);

struct ImportOptions {
  std::filesystem::path folder;  ///< a checkpoint folder: step-00000000 is made in it
  /// a job, as config::resolve() takes it; empty: config.json beside the weights
  std::vector<std::string> config;
  std::optional<DType> dtype;  ///< of all parameters; none: as each is stored
  int files = 1;               ///< shard files
};

/// Writes a model-only checkpoint from a Hugging Face folder, one .safetensors file, or such files
/// with TorchTitan's names (of Llama), in bounded memory. A config.json that describes the model is
/// copied into options.folder. Gives the step folder. Throws Error(data) naming what is missing or
/// misshapen, Error(usage) when the step folder exists.
std::filesystem::path import_weights(const std::filesystem::path& weights,
                                     const ImportOptions& options);

}  // namespace tessera::train
