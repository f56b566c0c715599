// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace tessera {
namespace {

bool is_of_environment(int error_number) {
  switch (error_number) {
    case EACCES:
    case EPERM:
    case EROFS:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return true;
    default:
      return false;
  }
}

std::string advice(int error_number, std::string_view place) {
  switch (error_number) {
    case ENOSPC:
    case EFBIG:
      return fmt::format("; free some space or choose another {}", place);
    case EDQUOT:
      return fmt::format("; free part of your quota or choose another {}", place);
    case EACCES:
    case EPERM:
      return fmt::format(
          "; correct the permissions of the file and its folders, or choose another {}", place);
    case EROFS:
      return fmt::format("; choose a {} on a writable file system", place);
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
      return "; check the path";
    default:
      return "";
  }
}

/// Makes a system call again for as long as a signal ends it before it began.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

void fail_errno(const FileErrors& errors, std::string_view doing, const std::filesystem::path& path,
                int error_number) {
  fail(is_of_environment(error_number) ? ExitCode::environment : errors.kind, "{} '{}' ({}){}",
       doing, path.string(), std::strerror(error_number), advice(error_number, errors.place));
}

File::File(int descriptor, std::filesystem::path path, const FileErrors& errors)
    : descriptor_(descriptor), path_(std::move(path)), errors_(errors) {}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      errors_(other.errors_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(errors_, other.errors_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File File::open_with(const std::filesystem::path& path, int flags, const FileErrors& errors,
                     std::string_view doing) {
  // O_NONBLOCK: a named pipe in the place of a file must not hang the job.
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666); });
  if (descriptor < 0) fail_errno(errors, doing, path, errno);
  File file(descriptor, path, errors);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail_errno(errors, doing, path, errno);
  require(S_ISREG(status.st_mode), errors.kind, "{} '{}' (it is not a regular file)", doing,
          path.string());
  return file;
}

File File::open_to_read(const std::filesystem::path& path, const FileErrors& errors) {
  return open_with(path, O_RDONLY, errors, "cannot open");
}
File File::create(const std::filesystem::path& path, const FileErrors& errors) {
  return open_with(path, O_RDWR | O_CREAT | O_EXCL, errors, "cannot create");
}
File File::create_or_join(const std::filesystem::path& path, const FileErrors& errors) {
  return open_with(path, O_RDWR | O_CREAT, errors, "cannot create");
}

std::int64_t File::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0)
    fail_errno(errors_, "cannot find the size of", path_, errno);
  return status.st_size;
}

void File::read(void* data, std::size_t bytes, std::int64_t offset) const {
  auto* to = static_cast<char*>(data);
  while (bytes != 0) {
    const ssize_t got = uninterrupted([&] { return ::pread(descriptor_, to, bytes, offset); });
    if (got < 0) fail_errno(errors_, "cannot read", path_, errno);
    require(got != 0, errors_.kind, "cannot read '{}' (it ends at byte {}, {} more were expected)",
            path_.string(), offset, bytes);
    to += got, offset += got, bytes -= static_cast<std::size_t>(got);
  }
}

void File::write(const void* data, std::size_t bytes, std::int64_t offset) const {
  const auto* from = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t put = uninterrupted([&] { return ::pwrite(descriptor_, from, bytes, offset); });
    if (put <= 0) fail_errno(errors_, "cannot write", path_, put < 0 ? errno : ENOSPC);
    from += put, offset += put, bytes -= static_cast<std::size_t>(put);
  }
}

void File::resize(std::int64_t bytes) const {
  if (uninterrupted([&] { return ::ftruncate(descriptor_, bytes); }) != 0)
    fail_errno(errors_, "cannot resize", path_, errno);
}

void File::begin_flush(std::int64_t offset, std::int64_t bytes) const {
  static_cast<void>(::sync_file_range(descriptor_, offset, bytes, SYNC_FILE_RANGE_WRITE));
}

void File::sync() const {
  if (uninterrupted([&] { return ::fdatasync(descriptor_); }) != 0)
    fail_errno(errors_, "cannot flush", path_, errno);
}

void File::close() {
  // On Linux an interrupted close has closed the descriptor.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    fail_errno(errors_, "cannot finish writing", path_, errno);
}

std::string read_text(const std::filesystem::path& path, std::int64_t limit_bytes,
                      const FileErrors& errors) {
  const File file = File::open_to_read(path, errors);
  const std::int64_t bytes = file.size();
  require(bytes <= limit_bytes, errors.kind, "cannot read '{}' ({} bytes; at most {} are expected)",
          path.string(), bytes, limit_bytes);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
}

void write_text(const std::filesystem::path& path, std::string_view text,
                const FileErrors& errors) {
  File file = File::create(path, errors);
  file.write(text.data(), text.size(), 0);
  file.sync();
  file.close();
}

void make_folder(const std::filesystem::path& folder, const FileErrors& errors) {
  if (uninterrupted([&] { return ::mkdir(folder.c_str(), 0777); }) == 0) return;
  const int error_number = errno;
  std::error_code ignored;
  if (error_number != EEXIST || !std::filesystem::is_directory(folder, ignored))
    fail_errno(errors, "cannot make the folder", folder, error_number);
}

void make_folders(const std::filesystem::path& folder, const FileErrors& errors) {
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return;
  const std::filesystem::path parent = folder.has_parent_path() ? folder.parent_path() : ".";
  if (parent != folder) make_folders(parent, errors);
  make_folder(folder, errors);
  sync_folder(parent, errors);
}

void sync_folder(const std::filesystem::path& folder, const FileErrors& errors) {
  const int descriptor =
      uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) fail_errno(errors, "cannot open the folder", folder, errno);
  const int error_number = uninterrupted([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  // Some network file systems cannot flush a folder and say EINVAL: their renames are synchronous.
  if (error_number != 0 && error_number != EINVAL)
    fail_errno(errors, "cannot flush the folder", folder, error_number);
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to,
                 const FileErrors& errors) {
  if (uninterrupted([&] { return ::rename(from.c_str(), to.c_str()); }) != 0)
    fail_errno(errors, fmt::format("cannot rename '{}' to", from.string()), to, errno);
}

void sync_entry(const std::filesystem::path& file, const FileErrors& errors) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (::access(folder.c_str(), R_OK) == 0) sync_folder(folder, errors);
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to,
                    const FileErrors& errors) {
  rename_path(from, to, errors);
  sync_entry(to, errors);
}

}  // namespace tessera
