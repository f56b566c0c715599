// SPDX-License-Identifier: Apache-2.0
// Small text files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera::metrics {

/// Writes `text` beside `file`, flushes it to the disk and renames it over `file`: a reader sees
/// the old text or the new one. Throws Error(environment) naming the file.
void write_file_atomically(const std::filesystem::path& file, std::string_view text);

}  // namespace tessera::metrics
