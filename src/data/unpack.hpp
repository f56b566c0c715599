// SPDX-License-Identifier: Apache-2.0
// Text files compressed with gzip or Zstandard. The only user of zlib and libzstd.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace tessera::data {

enum class Packing : std::uint8_t { none, gzip, zstd };

/// How a file is compressed, by its first bytes. Throws Error(data) for formats that Tessera does
/// not read (bzip2, xz, lz4), and for a name in .gz or .zst whose bytes are neither.
Packing packing_of(std::string_view bytes, const std::filesystem::path& path);

/// Takes the next portion of the text, at most 1 MiB.
using TextSink = std::function<void(std::string_view)>;

/// Decompresses all members or frames of `bytes`, in memory that does not depend on their size.
/// Throws Error(data), naming `path`, for damage, a truncated file, bytes after the end, and for
/// what unpacks to more than 200 times its size: no text does.
void unpack(std::string_view bytes, Packing packing, const std::filesystem::path& path,
            const TextSink& sink);

}  // namespace tessera::data
