// SPDX-License-Identifier: Apache-2.0
// The job of a folder that a command is given.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::app {

/// The words of the job: that of a run, wherever its folder is now, or of a Hugging Face folder
/// such as `ckpt export` writes. Error(usage) for another folder.
std::vector<std::string> job_of_folder(const std::filesystem::path& folder);

}  // namespace tessera::app
