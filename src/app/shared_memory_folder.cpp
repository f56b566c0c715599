// SPDX-License-Identifier: Apache-2.0
#include "shared_memory_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kFolderName = "tessera-launch-";

/// Opens a folder and locks it for as long as somebody has it open; -1 where somebody else has.
int lock_folder(const fs::path& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  close(folder);
  return -1;
}

/// Removes what launchers of this user left that were killed, and whose mpirun is gone too.
void remove_abandoned_folders() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kSharedMemory, error)) {
    struct stat status {};
    if (!entry.path().filename().string().starts_with(kFolderName) ||
        lstat(entry.path().c_str(), &status) != 0 || status.st_uid != geteuid())
      continue;
    const int folder = lock_folder(entry.path());
    if (folder < 0) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
    close(folder);
  }
}

}  // namespace

SharedMemoryFolder::SharedMemoryFolder() {
  remove_abandoned_folders();
  for (int attempt = 0; attempt < 10 && path_.empty(); ++attempt) {
    std::string pattern = fmt::format("{}/{}{}-XXXXXX", kSharedMemory, kFolderName, getpid());
    if (!mkdtemp(pattern.data())) return;
    lock_ = lock_folder(pattern);
    // Before it was locked another launcher may have taken it for an abandoned one.
    if (lock_ >= 0 && fs::exists(pattern)) path_ = pattern;
    if (path_.empty() && lock_ >= 0) close(lock_);
  }
}

SharedMemoryFolder::~SharedMemoryFolder() {
  std::error_code ignored;
  if (path_.empty()) return;
  fs::remove_all(path_, ignored);
  close(lock_);
}

}  // namespace tessera::app
