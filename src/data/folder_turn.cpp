// SPDX-License-Identifier: Apache-2.0
#include "folder_turn.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "tessera/base/log.hpp"

namespace tessera::data {

FolderTurn::FolderTurn(const std::filesystem::path& folder) {
  std::error_code ignored;  // who writes there says what is wrong
  std::filesystem::create_directories(folder, ignored);
  descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return;
  log::info("waiting for another process that writes tokens to '{}'", folder.string());
  waited_ = true;
  while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderTurn::~FolderTurn() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tessera::data
