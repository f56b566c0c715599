#include "step_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <random>
#include <sstream>

#include "file_io.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnerNote = "owner";
constexpr std::string_view kPrefix = "step-";

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// What makes process numbers comparable: the same boot of the same kernel and the same PID namespace.
std::string process_table() {
  std::error_code ignored;
  return first_line("/proc/sys/kernel/random/boot_id") + " " + fs::read_symlink("/proc/self/ns/pid", ignored).string();
}

/// Clock ticks at which the process started (field 22 of its stat), so that a number that was used again is told apart.
std::string start_ticks(const std::string& pid) {
  std::string line = first_line("/proc/" + pid + "/stat");
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return field;
}

bool owner_is_dead(const fs::path& partial) {
  std::ifstream in(partial / kOwnerNote);
  std::string table, pid, ticks;
  std::getline(in, table);
  in >> pid >> ticks;
  return !ticks.empty() && table == process_table() && start_ticks(pid) != ticks;
}

bool is_stale(const fs::path& folder, double stale_seconds) {
  auto newest = fs::last_write_time(folder);
  for (const auto& entry : fs::directory_iterator(folder)) newest = std::max(newest, entry.last_write_time());
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - newest).count() > stale_seconds;
}

/// The step of "step-%08d", or -1.
std::int64_t step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 8) return -1;
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() && step_name(step) == name ? step : -1;
}

bool is_dead(const fs::path& path, double stale_seconds) {
  const std::string name = path.filename().string();
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos || step_of(name.substr(0, dot)) < 0) return false;
  const std::string_view kind = std::string_view(name).substr(dot);
  if (kind.starts_with(".deleting-")) return true;
  return kind.starts_with(".partial-") && (owner_is_dead(path) || is_stale(path, stale_seconds));
}

}  // namespace

std::string step_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

std::string make_uuid() {
  std::random_device random;
  std::uint32_t w[4];
  for (std::uint32_t& word : w) word = random();
  w[1] = (w[1] & 0xffff0fffu) | 0x4000u;
  w[2] = (w[2] & 0x3fffffffu) | 0x80000000u;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", w[0], w[1] >> 16, w[1] & 0xffffu, w[2] >> 16,
                     w[2] & 0xffffu, w[3]);
}

fs::path partial_path(const fs::path& folder, std::int64_t step, const std::string& uuid) {
  return folder / fmt::format("{}.partial-{}", step_name(step), uuid);
}

fs::path damaged_path(const fs::path& folder, std::int64_t step, const std::string& uuid) {
  return folder / fmt::format("{}.damaged-{}", step_name(step), uuid);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_errno(ExitCode::checkpoint, "cannot create folder", folder, error.value());
}

void make_partial(const fs::path& partial) {
  make_folder(partial);
  const std::string pid = std::to_string(::getpid());
  write_text(partial / kOwnerNote, fmt::format("{}\n{} {}\n", process_table(), pid, start_ticks(pid)),
             ExitCode::checkpoint);
}

void write_hint(const fs::path& folder, const std::string& step_folder, const std::string& uuid) {
  const fs::path temporary = folder / ("LATEST.partial-" + uuid);
  write_text(temporary, step_folder + "\n", ExitCode::checkpoint);
  rename_path(temporary, folder / "LATEST", ExitCode::checkpoint);
}

void drop_owner_note(const fs::path& partial) { fs::remove(partial / kOwnerNote); }

void remove_quietly(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) log::warning("cannot remove {} ({}); remove it by hand", folder.string(), error.message());
}

void remove_dead_attempts(const fs::path& folder, double stale_seconds) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    try {
      if (!is_dead(entry.path(), stale_seconds)) continue;
    } catch (const fs::filesystem_error&) {
      continue;  // somebody else is removing it
    }
    log::info("removing {}, left by an attempt that ended", entry.path().string());
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
  std::sort(steps.begin(), steps.end(), [](const StepFolder& a, const StepFolder& b) { return a.step < b.step; });
  return steps;
}

void retain_newest(const fs::path& folder, int keep) {
  if (keep <= 0) return;
  std::vector<StepFolder> steps = list_steps(folder);
  std::reverse(steps.begin(), steps.end());
  for (const StepFolder& step : steps) {
    if (keep > 0) {
      keep -= verify(step.path, false).empty();
      continue;
    }
    const fs::path dying = folder / fmt::format("{}.deleting-{}", step_name(step.step), make_uuid());
    std::error_code error;
    fs::rename(step.path, dying, error);
    if (error)
      log::warning("cannot remove old checkpoint {} ({})", step.path.string(), error.message());
    else
      remove_quietly(dying);
  }
}

}  // namespace tessera::checkpoint
