// SPDX-License-Identifier: Apache-2.0
// The sweep that a user names by its file or by its folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tessera/sweep/point_folder.hpp"

namespace tessera::app {

/// The sweep of a file, or of the folder of an earlier start, whose points then run in it.
sweep::Sweep sweep_named(const std::string& file_or_folder);

/// The points of a folder, with what Slurm knows of them. None where nothing has been prepared.
/// Where squeue fails: a warning, or Error(environment) where they are read `to_start` some.
std::vector<sweep::PointStatus> statuses_in(const std::filesystem::path& folder, bool to_start);

/// Of a folder: its points. Of a sweep file: also its points that the folder does not have yet.
/// Throws Error(usage) where the folder holds another sweep than the file.
std::vector<sweep::PointStatus> statuses_of(const std::string& file_or_folder);

}  // namespace tessera::app
