// SPDX-License-Identifier: Apache-2.0
// Which checkpoints an argument of `tessera ckpt` means: a run's folder, its checkpoint folder or
// one step's folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/checkpoint/inspect.hpp"

namespace tessera::app {

/// The run's or checkpoint folder's own folder of step folders. Error(checkpoint) when there is
/// none.
std::filesystem::path checkpoint_folder_of(const std::string& argument);
/// The step folders, oldest first; one that is named directly is the only one. Never empty:
/// Error(checkpoint).
std::vector<checkpoint::StepFolder> steps_of(const std::string& argument);
/// The step folder that is named, or the newest valid one; those passed over are said on standard
/// error.
std::filesystem::path newest_of(const std::string& argument);

/// A folder that `tessera ckpt` may fill with checkpoints. Error(usage) for a run's folder, whose
/// checkpoints are in a folder inside it, and for a checkpoint.
void require_target(const std::filesystem::path& folder);

}  // namespace tessera::app
