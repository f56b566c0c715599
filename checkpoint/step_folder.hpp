// Names and life of the folders in a checkpoint folder:
//   step-00001000                 committed
//   step-00001000.partial-UUID    being written, or left by a dead attempt
//   step-00001000.damaged-UUID    was found damaged when the step was saved again; kept for people
//   step-00001000.deleting-UUID   on its way out
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {

/// "step-00001000".
std::string step_name(std::int64_t step);
/// A random UUID (version 4): one for each attempt to save.
std::string make_uuid();

std::filesystem::path partial_path(const std::filesystem::path& folder, std::int64_t step, const std::string& uuid);
std::filesystem::path damaged_path(const std::filesystem::path& folder, std::int64_t step, const std::string& uuid);

/// mkdir -p. Error(checkpoint or environment).
void make_folder(const std::filesystem::path& folder);
/// Makes a partial folder and the note in it that says which process owns it.
void make_partial(const std::filesystem::path& partial);
/// Takes the owner's note away: the folder is about to be committed.
void drop_owner_note(const std::filesystem::path& partial);

/// Removes what dead attempts left. A partial folder whose owner ran in this very process table (same boot, same PID
/// namespace) is dead when that process is gone; any other is dead when nothing in it changed for `stale_seconds`.
/// Folders that are being deleted go always. What cannot be removed is left, with a warning in the log.
void remove_dead_attempts(const std::filesystem::path& folder, double stale_seconds);

/// Deletes all but the newest `keep` valid checkpoints; damaged ones neither count nor go unless they are older than
/// those kept. A folder is renamed before it is emptied, so that no reader sees half of it. `keep` == 0 does nothing.
void retain_newest(const std::filesystem::path& folder, int keep);

/// Replaces `folder/LATEST`, which tells people and scripts the newest step folder; nothing here reads it.
void write_hint(const std::filesystem::path& folder, const std::string& step_folder, const std::string& uuid);

/// Removes a folder and what is in it; a failure is a warning in the log.
void remove_quietly(const std::filesystem::path& folder);

}  // namespace tessera::checkpoint
