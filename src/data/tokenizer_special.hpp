// SPDX-License-Identifier: Apache-2.0
// Which tokens begin and end a document.
#pragma once

#include <filesystem>
#include <optional>

#include "bpe.hpp"
#include "tessera/base/json_reader.hpp"

namespace tessera::data {

/// Of tokenizer.json and tokenizer_config.json: what is longer is not read.
inline constexpr std::int64_t kMostTokenizerBytes = std::int64_t{1} << 30;

struct SpecialIds {
  std::optional<int> bos, eos;
};

/// From tokenizer_config.json (null there means none), else from the template of "post_processor",
/// else by usual names. Warns of a token in tokenizer_config.json that `ids` lack.
SpecialIds find_special_ids(const JsonNode& tokenizer, const std::filesystem::path& config,
                            const StringMap<std::int32_t>& ids);

}  // namespace tessera::data
