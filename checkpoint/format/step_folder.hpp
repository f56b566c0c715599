// SPDX-License-Identifier: Apache-2.0
// Names and life of the folders in a checkpoint folder:
//   step-00001000                                committed
//   step-00001000.partial-UUID.TABLE-PID-TICKS   being written by that process, or left by a dead
//   attempt step-00001000.damaged-UUID                   was found damaged when the step was saved
//   again; kept for people step-00001000.deleting-UUID                  on its way out
// The owner is in the partial folder's name, so that no moment exists at which such a folder has
// none: TABLE stands for the boot and the PID namespace, TICKS for when the process started.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {

/// The step in the name of a step folder, or -1.
std::int64_t step_of(std::string_view name);
/// The step in the name of a folder, also of "a/step-00001000/" and, inside it, of "."; -1 when its
/// name is another.
std::int64_t step_of_folder(const std::filesystem::path& folder);
/// A random UUID (version 4): one for each attempt to save.
std::string make_uuid();

/// Where this process writes an attempt. Processes that write together take the first one's path.
std::filesystem::path partial_path(const std::filesystem::path& folder, std::int64_t step,
                                   const std::string& uuid);
std::filesystem::path damaged_path(const std::filesystem::path& folder, std::int64_t step,
                                   const std::string& uuid);

/// Removes what dead attempts left. A partial folder whose owner ran in this very process table
/// (same boot, same PID namespace) is dead when that process is gone; any other is dead when
/// nothing in it changed for `stale_seconds`. Folders that are being deleted, half-written hints
/// and indices go always. What cannot be removed is left, with a warning in the log.
void remove_dead_attempts(const std::filesystem::path& folder, double stale_seconds);

/// What an entry of a checkpoint folder is, by its name. Debris serves no purpose: folders that are
/// being deleted, half-written hints and indices.
enum class Leftover : std::uint8_t { none, partial, damaged, debris };
Leftover leftover_of(const std::filesystem::path& path);
/// True for a partial folder that no living process owns.
bool is_dead_partial(const std::filesystem::path& partial, double stale_seconds);

/// Removes a step folder: renamed first, so that no reader sees half of it. Error(checkpoint or
/// environment) when it cannot be renamed.
void remove_step(const std::filesystem::path& step_folder);

inline constexpr const char* kHintName = "LATEST";
/// Replaces `folder/LATEST`, which names the newest of its step folders, if there is one, for
/// people and scripts; nothing here reads it.
void write_hint(const std::filesystem::path& folder);

/// Work after a commit, which can no longer fail: an exception is a warning in the log.
void warn_if_it_fails(const std::function<void()>& work);

/// Removes a file, or a folder and what is in it; a failure is a warning in the log.
void remove_quietly(const std::filesystem::path& path);

}  // namespace tessera::checkpoint
