// SPDX-License-Identifier: Apache-2.0
#include "output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "tessera/base/error.hpp"

namespace tessera::data {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  require(!std::filesystem::is_directory(path_, ignored), ExitCode::environment,
          "cannot write '{}' (it is a folder); name a file in it", path_.string());
  std::error_code error;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), error);
  require(!error, ExitCode::environment,
          "cannot make the folder '{}' ({}); check the path and its permissions",
          path_.parent_path().string(), error.message());
  // Not the process's ID: machines that share a file system give out the same ones.
  aside_ = path_.string() + fmt::format(".partial-{:08x}", std::random_device()());
  descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_with_errno("cannot make");
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      aside_(std::move(other.aside_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      buffer_(std::move(other.buffer_)),
      written_(other.written_) {}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(aside_.c_str());
}

void OutputFile::fail_with_errno(const char* what) const {
  fail(ExitCode::environment,
       "{} '{}' ({}); check the path, its permissions and the space on the disk", what,
       path_.string(), std::strerror(errno));
}

void OutputFile::write_at(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_with_errno("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

void OutputFile::flush() {
  write_at(buffer_, written_);
  written_ += buffer_.size();
  buffer_.clear();
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kBufferBytes) flush();
}

void OutputFile::rewrite_beginning(std::string_view bytes) {
  flush();
  write_at(bytes, 0);
}

void OutputFile::commit() {
  flush();
  if (::fsync(descriptor_) != 0 || ::close(std::exchange(descriptor_, -1)) != 0) {
    const int why = errno;
    ::unlink(aside_.c_str());
    errno = why;
    fail_with_errno("cannot write");
  }
  if (std::rename(aside_.c_str(), path_.c_str()) != 0) {
    const int why = errno;
    ::unlink(aside_.c_str());
    errno = why;
    fail_with_errno("cannot move to its final name");
  }
}

}  // namespace tessera::data
