// SPDX-License-Identifier: Apache-2.0
// One process at a time works in a folder that several share.
#pragma once

#include <filesystem>

namespace tessera::data {

/// Waits until no other process has its turn in the folder, which is made if it is missing. Where
/// the file system has no locks, all have it at once.
class FolderTurn {
 public:
  explicit FolderTurn(const std::filesystem::path& folder);
  ~FolderTurn();
  FolderTurn(const FolderTurn&) = delete;
  FolderTurn& operator=(const FolderTurn&) = delete;

  /// Whether another one had its turn meanwhile.
  bool waited() const { return waited_; }

 private:
  int descriptor_;
  bool waited_ = false;
};

}  // namespace tessera::data
