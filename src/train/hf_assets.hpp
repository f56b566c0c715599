// SPDX-License-Identifier: Apache-2.0
// What lies beside the weights in a Hugging Face folder: tokenizer, generation settings, special
// ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tessera/config/job_config.hpp"

namespace tessera::train {

struct HfAssets {
  /// that of tokenizer.json; none: there is none for this model
  std::optional<std::filesystem::path> folder;
  std::optional<int> bos, eos;
  std::string bos_token, eos_token;  ///< "" where there is no such id
  std::string why_not;               ///< why there is no tokenizer
};

/// The tokenizer at `named`, else the job's (model.hf_assets_path), for a model with `vocab` rows;
/// the ids of its model.hf_config where there is none. Throws Error(data) for a named one that is
/// not there or is larger than the model, and for one that cannot be read.
HfAssets find_hf_assets(const config::JobConfig& job,
                        const std::optional<std::filesystem::path>& named, std::int64_t vocab);

/// Copies tokenizer.json and what stands beside it to `folder`; writes tokenizer_config.json and
/// generation_config.json where the tokenizer's folder has none. Throws Error(environment).
void write_hf_assets(const HfAssets& assets, const std::filesystem::path& folder);

}  // namespace tessera::train
