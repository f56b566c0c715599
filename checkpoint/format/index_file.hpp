// SPDX-License-Identifier: Apache-2.0
// index.h5: every tensor whole, for h5py and h5dump. Nothing that loads reads it, and a checkpoint
// is valid without it: it is written after the commit.
#pragma once

#include <filesystem>

#include "format/manifest.hpp"
#include "tessera/base/file.hpp"

namespace tessera::checkpoint {

/// Writes index.h5 of the committed `step_folder`, reading the shards' box tables: whole in
/// `folder` first, then renamed into its place. Nothing (and a line in the log) when there are more
/// than a million boxes: libhdf5 then needs a minute and more.
void write_index(const std::filesystem::path& folder, const std::filesystem::path& step_folder,
                 const Manifest& manifest);

/// The last bytes of an index are a checksum of its checkpoint's UUID and of those before, which
/// libhdf5 does not look at. Error(checkpoint) when it is not there, or, with `deep`, when it does
/// not match.
void check_index(const File& file, const std::string& uuid, bool deep);

}  // namespace tessera::checkpoint
