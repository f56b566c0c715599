// SPDX-License-Identifier: Apache-2.0
// Which tokens begin and end a document.
#pragma once

#include <filesystem>
#include <optional>

#include "bpe.hpp"
#include "json_reader.hpp"

namespace tessera::data {

struct SpecialIds {
  std::optional<int> bos, eos;
};

/// From tokenizer_config.json (null there means none), else from the template of "post_processor",
/// else by usual names.
SpecialIds find_special_ids(const JsonNode& tokenizer, const std::filesystem::path& config,
                            const StringMap<std::int32_t>& ids);

}  // namespace tessera::data
