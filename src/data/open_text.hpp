// SPDX-License-Identifier: Apache-2.0
// A file of text, compressed or not, in the address space.
#pragma once

#include <cstdint>
#include <filesystem>

#include "mapped_file.hpp"

namespace tessera::data {

/// Maps a file of plain text or JSONL. Of a compressed one what is in it: it is unpacked, with
/// bounded memory, into a file without a name in `scratch` (or the nearest folder above it that
/// exists), which ends with the MappedFile. Throws Error(data) for a file that cannot be read or is
/// damaged, Error(environment) when the disk is full.
/// Of a compressed one at least `first_bytes` are unpacked, where it has as many; 0: all.
MappedFile open_text(const std::filesystem::path& path, const std::filesystem::path& scratch,
                     std::int64_t first_bytes = 0);

}  // namespace tessera::data
