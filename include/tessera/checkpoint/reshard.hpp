// SPDX-License-Identifier: Apache-2.0
// The same checkpoint in another number of files.
#pragma once

#include <filesystem>

namespace tessera::checkpoint {

struct ReshardOptions {
  /// a checkpoint folder, as SaveOptions::folder: the step folder is made in it
  std::filesystem::path folder;
  int files = 1;  ///< shard files; each tensor is cut over them along its first dimension above 1
  bool write_index = true;
};

/// Writes the checkpoint again: tensors, state, configuration, step and mesh as they are, under a
/// UUID of its own, and commits it by a rename as save() does, in bounded memory (stream.hpp).
/// Gives the new step folder. Error(usage) when that exists, Error(checkpoint) when a block of the
/// source is damaged; nothing is left then.
std::filesystem::path reshard(const std::filesystem::path& step_folder,
                              const ReshardOptions& options);

}  // namespace tessera::checkpoint
