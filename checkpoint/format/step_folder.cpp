// SPDX-License-Identifier: Apache-2.0
#include "format/step_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <random>
#include <sstream>

#include "format/manifest.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/log.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kHintPartial = "LATEST.partial-", kIndexPartial = "index.h5.partial-";

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// What makes process numbers comparable: the same boot of the same kernel and the same PID
/// namespace.
std::string process_table() {
  std::error_code ignored;
  const std::string table = first_line("/proc/sys/kernel/random/boot_id") + " " +
                            fs::read_symlink("/proc/self/ns/pid", ignored).string();
  return fmt::format("{:08x}", crc32c(0, table.data(), table.size()));
}

/// Clock ticks at which the process started (field 22 of its stat), so that a number that was used
/// again is recognized. None for a dead one that still waits for its parent (field 3): in a
/// container process 1 may never ask for it.
std::string start_ticks(const std::string& pid) {
  std::string line = first_line("/proc/" + pid + "/stat");
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string state, field;
  fields >> state;
  for (int i = 4; i <= 22; ++i) fields >> field;
  return state == "Z" || state == "X" ? "" : field;
}

/// "TABLE-PID-TICKS": distinguishes this process from every other one, earlier and later ones, too.
std::string this_process() {
  const std::string pid = std::to_string(::getpid());
  return fmt::format("{}-{}-{}", process_table(), pid, start_ticks(pid));
}

bool owner_is_dead(const fs::path& partial) {
  const std::string name = partial.filename().string();
  std::istringstream owner(name.substr(name.rfind('.') + 1));
  std::string table, pid, ticks;
  std::getline(owner, table, '-');
  std::getline(owner, pid, '-');
  std::getline(owner, ticks);
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  return is_number(pid) && is_number(ticks) && table == process_table() &&
         start_ticks(pid) != ticks;
}

/// By the clock that stamps the files of `folder`: a file server's may differ from this node's.
fs::file_time_type now_in(const fs::path& folder) {
  const fs::path probe = folder / (std::string(kHintPartial) + make_uuid());
  std::error_code error;
  std::ofstream(probe).flush();
  const fs::file_time_type now = fs::last_write_time(probe, error);
  if (error) return fs::file_time_type::clock::now();
  fs::remove(probe, error);
  return now;
}

bool is_stale(const fs::path& folder, double stale_seconds) {
  auto newest = fs::last_write_time(folder);
  for (const auto& entry : fs::directory_iterator(folder))
    newest = std::max(newest, entry.last_write_time());
  return std::chrono::duration<double>(now_in(folder.parent_path()) - newest).count() >
         stale_seconds;
}

}  // namespace

std::string step_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

std::int64_t step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 8) return -1;
  std::int64_t step = -1;
  const auto [end, error] =
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() && step_name(step) == name ? step
                                                                                             : -1;
}

std::int64_t step_of_folder(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return step_of((whole.has_filename() ? whole : whole.parent_path()).filename().string());
}

bool is_step_folder(const fs::path& path) {
  const fs::path name = path.has_filename() ? path : path.parent_path();  // "step-00000002/"
  std::error_code ignored;
  return name.filename().string().starts_with(kPrefix) || fs::exists(path / kManifestName, ignored);
}

Leftover leftover_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with(kHintPartial) || name.starts_with(kIndexPartial)) return Leftover::debris;
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos || step_of(name.substr(0, dot)) < 0) return Leftover::none;
  const std::string_view kind = std::string_view(name).substr(dot);
  if (kind.starts_with(".partial-")) return Leftover::partial;
  if (kind.starts_with(".damaged-")) return Leftover::damaged;
  return kind.starts_with(".deleting-") ? Leftover::debris : Leftover::none;
}

bool is_dead_partial(const fs::path& partial, double stale_seconds) {
  try {
    return owner_is_dead(partial) || is_stale(partial, stale_seconds);
  } catch (const fs::filesystem_error&) {
    return false;  // somebody else is removing it
  }
}

std::string make_uuid() {
  std::random_device random;
  std::uint32_t w[4];
  for (std::uint32_t& word : w) word = random();
  w[1] = (w[1] & 0xffff0fffu) | 0x4000u;
  w[2] = (w[2] & 0x3fffffffu) | 0x80000000u;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", w[0], w[1] >> 16, w[1] & 0xffffu,
                     w[2] >> 16, w[2] & 0xffffu, w[3]);
}

fs::path partial_path(const fs::path& folder, std::int64_t step, const std::string& uuid) {
  return folder / fmt::format("{}.partial-{}.{}", step_name(step), uuid, this_process());
}

fs::path damaged_path(const fs::path& folder, std::int64_t step, const std::string& uuid) {
  return folder / fmt::format("{}.damaged-{}", step_name(step), uuid);
}

void write_hint(const fs::path& folder) {
  const std::vector<StepFolder> steps = list_steps(folder);
  if (steps.empty()) return;  // somebody has removed them meanwhile
  const fs::path temporary = folder / (std::string(kHintPartial) + make_uuid());
  write_text(temporary, steps.back().path.filename().string() + "\n", ExitCode::checkpoint);
  rename_path(temporary, folder / kHintName, ExitCode::checkpoint);
}

void warn_if_it_fails(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    log::warning("{}", error.what());
  }
}

void remove_quietly(const fs::path& path) {
  std::error_code error;
  do fs::remove_all(path, error);
  while (error == std::errc::interrupted);
  if (error)
    log::warning("cannot remove {} ({}); remove it by hand", path.string(), error.message());
}

void remove_dead_attempts(const fs::path& folder, double stale_seconds) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const Leftover kind = leftover_of(entry.path());
    if (kind != Leftover::debris &&
        (kind != Leftover::partial || !is_dead_partial(entry.path(), stale_seconds)))
      continue;
    log::info("removing {}, left by an interrupted save", entry.path().string());
    remove_quietly(entry.path());
  }
}

std::vector<StepFolder> list_steps(const fs::path& folder) {
  std::vector<StepFolder> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::int64_t step = step_of(entry.path().filename().string()); step >= 0)
      steps.push_back({step, entry.path()});
  if (error && error != std::errc::no_such_file_or_directory)
    fail_errno(ExitCode::checkpoint, "cannot list folder", folder, error.value());
  std::sort(steps.begin(), steps.end(),
            [](const StepFolder& a, const StepFolder& b) { return a.step < b.step; });
  return steps;
}

void remove_step(const fs::path& step_folder) {
  const fs::path dying =
      step_folder.parent_path() /
      fmt::format("{}.deleting-{}", step_folder.filename().string(), make_uuid());
  rename_path(step_folder, dying, ExitCode::checkpoint);
  remove_quietly(dying);
}

}  // namespace tessera::checkpoint
