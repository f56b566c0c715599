// index.h5: every tensor whole, for h5py and h5dump. Nothing that loads reads it.
#pragma once

#include <filesystem>
#include <optional>

#include "file_io.hpp"
#include "manifest.hpp"

namespace tessera::checkpoint {

/// Writes and flushes index.h5 beside the shards that the manifest lists, reading their box tables. Nothing (and a line
/// in the log) when there are more than a million boxes: libhdf5 then needs a minute and more.
std::optional<IndexRecord> write_index(const std::filesystem::path& folder, const Manifest& manifest);

/// Size and checksum of a file, read in blocks.
IndexRecord record_of(const File& file);

}  // namespace tessera::checkpoint
