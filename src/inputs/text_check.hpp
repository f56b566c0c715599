// SPDX-License-Identifier: Apache-2.0
// What is wrong with a text, as far as its beginning tells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tessera/data/tokenizer.hpp"

namespace tessera::inputs {

/// What a source must hold.
struct Windows {
  std::optional<std::int64_t> seq_len;  ///< empty: it was misread, and every source holds enough
  double held_out = 0;
};

/// Reads the first 64 KiB of each of the first 16 files. Throws Error(data) for what a run would
/// refuse there, and, where that is all of the text, if its tokens are too few.
void check_text(const std::vector<std::filesystem::path>& files, const data::Tokenizer& tokenizer,
                const Windows& windows);

}  // namespace tessera::inputs
