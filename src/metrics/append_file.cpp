// SPDX-License-Identifier: Apache-2.0
#include "append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "run_files.hpp"

namespace tessera::metrics {
namespace {

int open_to_append(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
  if (descriptor < 0) fail_errno(kRunFiles, "cannot write", file, errno);
  return descriptor;
}

/// Bytes of the file, or -1 where a length means nothing.
off_t length_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

/// 0, or the errno of the write that failed.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path file)
    : file_(std::move(file)), descriptor_(open_to_append(file_)) {}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::write(std::string_view text) {
  const off_t before = length_of(descriptor_);
  const int error_number = write_all(descriptor_, text);
  if (error_number == 0) return;
  // Best effort: the caller learns of the first failure, readers pass over a torn last line anyway.
  if (before >= 0) [[maybe_unused]]
    const int ignored = ::ftruncate(descriptor_, before);
  fail_errno(kRunFiles, "cannot write", file_, error_number);
}

}  // namespace tessera::metrics
