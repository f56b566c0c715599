// SPDX-License-Identifier: Apache-2.0
// Files at byte offsets. Every failure is one Error that names the file and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::checkpoint {

/// Throws for `errno`: Error(environment) when permissions, a read-only file system or a process
/// limit are the cause, else Error(kind). `doing` is as in "cannot write".
[[noreturn]] void fail_errno(ExitCode kind, std::string_view doing,
                             const std::filesystem::path& path, int error_number);

/// An open file descriptor. Reads and writes are complete or throw; they may come from several
/// threads.
class File {
 public:
  static File open_to_read(const std::filesystem::path& path, ExitCode kind);
  /// A file that does not exist yet.
  static File create(const std::filesystem::path& path, ExitCode kind);
  /// A file that several processes write: made by the first of them.
  static File create_or_join(const std::filesystem::path& path, ExitCode kind);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  std::int64_t size() const;
  /// Exactly `bytes` bytes at `offset`; a file that ends before is an error.
  void read(void* data, std::size_t bytes, std::int64_t offset) const;
  void write(const void* data, std::size_t bytes, std::int64_t offset) const;
  void resize(std::int64_t bytes) const;
  /// Asks the system to write these bytes to the disk by and by, so that sync() finds less to do. A
  /// hint: never fails.
  void begin_flush(std::int64_t offset, std::int64_t bytes) const;
  /// Makes the contents durable.
  void sync() const;
  /// Closes and reports what only close() can report (quota on NFS).
  void close();
  const std::filesystem::path& path() const { return path_; }

 private:
  File(int descriptor, std::filesystem::path path, ExitCode kind);
  static File open_with(const std::filesystem::path& path, int flags, ExitCode kind,
                        std::string_view doing);
  int descriptor_ = -1;
  std::filesystem::path path_;
  ExitCode kind_ = ExitCode::environment;
};

/// The whole file as text; one longer than `limit_bytes` is an error.
std::string read_text(const std::filesystem::path& path, std::int64_t limit_bytes, ExitCode kind);
/// Creates the file, writes, fsyncs.
void write_text(const std::filesystem::path& path, std::string_view text, ExitCode kind);
/// mkdir(2); one that is there is fine.
void make_folder(const std::filesystem::path& folder, ExitCode kind);
/// mkdir -p; what was made is durable.
void make_folders(const std::filesystem::path& folder, ExitCode kind);
/// Makes the entries of a folder durable.
void sync_folder(const std::filesystem::path& folder, ExitCode kind);
/// rename(2).
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to, ExitCode kind);

}  // namespace tessera::checkpoint
