// SPDX-License-Identifier: Apache-2.0
// One folder has one owner: two jobs that write metrics and checkpoints into one folder would ruin
// both.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string_view>

namespace tessera::metrics {

/// Owns a folder, by its file `.owner`, while it lives. Works on file systems that several nodes
/// share: the file is created exclusively, and touched at each heartbeat. Made on rank 0 only.
class FolderLock {
 public:
  struct Timing {
    std::chrono::milliseconds heartbeat{5'000};
    std::chrono::milliseconds silence{
        30'000};  ///< an owner on another machine that is silent for so long is dead
  };

  /// Creates the folder where it is not there. Takes over from an owner that is dead: on this
  /// machine its process is gone; on another one no heartbeat came for `silence`, while this call
  /// waits. Throws Error(environment) that names host, PID and time where the owner is alive.
  /// `key`: a literal, the key by which the user may choose another folder.
  explicit FolderLock(std::filesystem::path folder, std::string_view key = "job.dump_folder");
  FolderLock(std::filesystem::path folder, Timing timing, std::string_view key = "job.dump_folder");
  /// Gives the folder back; removes it if it was made here and nothing was written.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Whether a process says that it owns the folder; it may be dead.
  static bool is_owned(const std::filesystem::path& folder);

  /// Throws Error(environment) if another process has taken the folder over: this one was silent
  /// for too long.
  void check() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::metrics
