// SPDX-License-Identifier: Apache-2.0
// The files that a source of data names.
#pragma once

#include <filesystem>
#include <vector>

#include "tessera/data/token_file.hpp"

namespace tessera::data {

/// `path` itself if it is a file; of a folder its token files, or else its text and JSONL files, by
/// name; or what a pattern with * ? [ ] matches, by name. Throws Error(data) where that is nothing,
/// or token files and others together.
std::vector<std::filesystem::path> data_files(const std::filesystem::path& path);

/// Opens token files that one source is made of. Throws Error(data) when one is damaged, or of
/// another tokenizer or vocabulary than the first.
std::vector<TokenFile> open_token_files(const std::vector<std::filesystem::path>& paths);

/// Throws Error(data) when there is a tokenizer.json at `tokenizer` (its folder, or itself) and
/// another one made the token file. Without one token files do.
void check_made_by(const TokenFile& file, const std::filesystem::path& tokenizer);

/// Throws Error(data) unless both were made with one tokenizer.
void check_same_tokenizer(const TokenFile& one, const TokenFile& other);

}  // namespace tessera::data
