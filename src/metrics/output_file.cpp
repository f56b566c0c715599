// SPDX-License-Identifier: Apache-2.0
#include "output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::metrics {
namespace {

std::string_view remedy(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free some space or choose another job.dump_folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "correct its permissions or choose another job.dump_folder";
    default:
      return "choose another job.dump_folder";
  }
}

int open_for_writing(const std::filesystem::path& file, OutputFile::Mode mode) {
  const int how = mode == OutputFile::Mode::append ? O_APPEND : O_TRUNC;
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  if (descriptor < 0) fail_writing(file, errno);
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

void fail_writing(const std::filesystem::path& file, int code) {
  fail(ExitCode::environment, "cannot write {} ({}); {}", file.string(),
       std::generic_category().message(code), remedy(code));
}

OutputFile::OutputFile(std::filesystem::path file, Mode mode)
    : file_(std::move(file)), descriptor_(open_for_writing(file_, mode)) {}

OutputFile::~OutputFile() { ::close(descriptor_); }

void OutputFile::write(std::string_view text) {
  const off_t before = length_of(descriptor_);
  const int code = write_all(descriptor_, text);
  if (code == 0) return;
  // Best effort: the caller learns of the first failure, readers pass over a torn last line anyway.
  if (before >= 0) [[maybe_unused]]
    const int ignored = ::ftruncate(descriptor_, before);
  fail_writing(file_, code);
}

void OutputFile::sync() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail_writing(file_, errno);
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_writing(to, errno);
  const std::filesystem::path folder = to.has_parent_path() ? to.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;  // a folder that can be written but not read: the rename stands, only its flush is left
             // to the kernel
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace tessera::metrics
