// SPDX-License-Identifier: Apache-2.0
// Which checkpoints of a run stay, and which go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::checkpoint {

struct Retention {
  std::int64_t keep_latest = 0;  ///< this many of the newest valid ones; 0 keeps all
  std::int64_t keep_every = 0;   ///< multiples of this are kept permanently; 0: none
};

/// After a save of `saved_step`, which is valid: keeps it, the newest `keep_latest` - 1 older valid
/// ones and those of `keep_every`. Damaged ones do not count and go only when they are older than
/// those kept; newer ones (which may be what this run could not load, or another branch) neither
/// count nor go. What cannot be removed is left, with a warning in the log.
void retain(const std::filesystem::path& folder, const Retention& retention,
            std::int64_t saved_step);

struct PruneOptions {
  Retention retention;  ///< keep_latest >= 1
  /// damaged checkpoints too, when a newer one is whole; and step-N.damaged-UUID. One that cannot
  /// be read for lack of a permission or of memory stays, with a warning in the log.
  bool damaged = false;
  bool partial = false;                 ///< and step-N.partial-UUID when no living process owns it
  double stale_partial_seconds = 3600;  ///< as SaveOptions
};

struct Removal {
  std::filesystem::path path;
  std::string why;
};

/// What prune() would remove, newest first. Reads every byte of the latest checkpoint, and of older
/// ones until one is whole: that one stays. A checkpoint that looks complete counts as valid, a
/// damaged one does not.
std::vector<Removal> plan_prune(const std::filesystem::path& folder, const PruneOptions& options);

/// Removes them and, where LATEST names one of them, corrects it. Error(checkpoint or environment).
void prune(const std::filesystem::path& folder, const std::vector<Removal>& removals);

}  // namespace tessera::checkpoint
