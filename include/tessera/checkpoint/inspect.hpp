// SPDX-License-Identifier: Apache-2.0
// Looking at checkpoints without loading them: what is there, and is every byte as it was written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

struct StepFolder {
  std::int64_t step = 0;
  std::filesystem::path path;
};

/// Of the folder of a step: "step-00000010".
std::string step_name(std::int64_t step);

/// The step folders in `folder`, oldest first, valid or not; empty when the folder does not exist.
std::vector<StepFolder> list_steps(const std::filesystem::path& folder);

/// Whether a path is that of one step, rather than of a folder of them: it has a manifest, or its
/// name begins with "step-", whether or not it is there.
bool is_step_folder(const std::filesystem::path& path);

/// The description of a checkpoint.
struct Summary {
  std::int64_t step = 0;
  std::string uuid, mesh, written, writer;  ///< `written` is UTC, "2026-01-31T12:00:00Z"
  std::string config_toml, extra;
  std::vector<TensorInfo> tensors;
  std::int64_t boxes = 0;
  std::int64_t files = 0;       ///< shard files
  std::int64_t file_bytes = 0;  ///< of the shard files
};
/// From the manifest; checks it and that its files are there and complete. Error(checkpoint).
Summary summarize(const std::filesystem::path& step_folder);

/// One thing that is wrong with a checkpoint.
struct Finding {
  std::filesystem::path file;
  std::string what;
  /// What could not be read, for lack of a permission or of memory, may be whole.
  bool is_damage = true;
  /// False for index.h5, which nothing that loads reads.
  bool is_needed = true;
};
/// Is all that loading needs there, as far as these findings tell?
bool can_load(const std::vector<Finding>& findings);

/// Checks a step folder. Always: manifest (which must be of the step that the folder is named
/// after), presence and size of each file, box tables and checksum tables. With `deep` every byte
/// of every file. `part` of `parts` checks only its share of the files, so that ranks can divide
/// the work, and 0 <= part < parts. An empty answer means that nothing is wrong with this part.
/// Never hands a file to libhdf5.
std::vector<Finding> verify(const std::filesystem::path& step_folder, bool deep, int part = 0,
                            int parts = 1);

/// Does `folder/LATEST` name the newest step folder? It is a hint for people and scripts and
/// nothing here follows it: a wrong one (a save that ended between its rename and this file leaves
/// the one before) harms no load.
std::optional<Finding> check_hint(const std::filesystem::path& folder);

/// One line for a person: the findings joined, at most `limit` of them.
std::string describe(const std::vector<Finding>& findings, std::size_t limit = 4);

}  // namespace tessera::checkpoint
