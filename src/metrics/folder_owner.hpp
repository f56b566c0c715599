// SPDX-License-Identifier: Apache-2.0
// Which process owns a run's folder, as its file `.owner` says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::metrics {

struct FolderOwner {
  std::string token;  ///< random: tells two owners apart
  std::string host;
  std::string machine;  ///< boot and PID namespace: processes with the same one see each other
  std::int64_t pid = 0;
  /// in clock ticks since boot: a PID is used again, the two together are not
  std::int64_t process_start = 0;
  std::string since;      ///< UTC, for people
  std::string slurm_job;  ///< empty outside of Slurm
  std::int64_t slurm_restart = 0;

  static FolderOwner this_process();
  /// From the text of a file; fields that are missing or of another type stay empty.
  static FolderOwner parse(std::string_view text);
  std::string text() const;
  /// "host node7, pid 4711, since 2026-11-23 07:41:12 UTC, Slurm job 99"
  std::string description() const;
};

/// Whether the process of `owner` runs, as far as `here` can find out: not of a process on another
/// machine.
std::optional<bool> is_running(const FolderOwner& owner, const FolderOwner& here);

}  // namespace tessera::metrics
