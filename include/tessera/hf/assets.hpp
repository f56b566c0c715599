// SPDX-License-Identifier: Apache-2.0
// What is next to the weights in a Hugging Face folder: tokenizer, generation settings, special
// ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/tokenizer.hpp"

namespace tessera::hf {

struct Assets {
  /// the file of the tokenizer; none: there is none for this model
  std::optional<std::filesystem::path> tokenizer;
  std::optional<int> bos, eos;
  std::string bos_token, eos_token;  ///< "" where there is no such id
  std::string why_not;               ///< why there is no tokenizer
};

/// Where a tokenizer may be: a folder of a tokenizer.json, or a file.
struct AssetPlaces {
  std::optional<std::filesystem::path> named;  ///< must be there
  std::filesystem::path usual;                 ///< is used if it is there, and nothing was named
  std::filesystem::path target;                ///< the folder to write, if it has the model's
  std::string trained_with;                    ///< data::recorded_tokenizer() of the model
  /// config.json whose special ids count where there is no tokenizer
  std::optional<std::filesystem::path> config;
};

/// The tokenizer for a model with `vocab` rows. One that the model was not trained with is taken
/// only if it was named, with a warning. Throws Error(data) for a named one that is not
/// there or is larger than the model, and for one that cannot be read.
Assets find_assets(const AssetPlaces& places, std::int64_t vocab);

/// The ids after which a text ends: the tokenizer's own, and those of generation_config.json and
/// config.json in these places, one or a list of them in each. `places`: folders, or files of them;
/// "" is none. Warns of such a file that is damaged, and of an id that is no number.
std::vector<std::int32_t> end_ids(const std::vector<std::filesystem::path>& places,
                                  const data::Tokenizer& tokenizer);

/// Throws Error(usage) if `folder` has another tokenizer.
void refuse_another(const Assets& assets, const std::filesystem::path& folder);

/// Copies the tokenizer to `folder` as tokenizer.json, and the files next to it; writes
/// tokenizer_config.json and generation_config.json where the tokenizer's folder has none. Another
/// tokenizer is removed first, and the files next to it. Throws Error(environment).
void write_assets(const Assets& assets, const std::filesystem::path& folder);

}  // namespace tessera::hf
