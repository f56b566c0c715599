// SPDX-License-Identifier: Apache-2.0
// Files at byte offsets. Every failure is one Error that names the file and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera {

/// How failures with files are reported: as Error(environment) when permissions, a read-only file
/// system or a process limit are the cause, else as Error(kind). `place` is what the user may
/// choose another one of: "folder", or the option that names it.
struct FileErrors {
  constexpr FileErrors(ExitCode error_kind, std::string_view chosen = "folder")
      : kind(error_kind), place(chosen) {}
  ExitCode kind;
  std::string_view place;  ///< a literal
};

/// Throws for the value of `errno`: what could not be done ("cannot write"), the file, the system's
/// reason, what to do.
[[noreturn]] void fail_errno(const FileErrors& errors, std::string_view doing,
                             const std::filesystem::path& path, int error_number);

/// An open file descriptor. Reads and writes are complete or throw; they may come from several
/// threads.
class File {
 public:
  static File open_to_read(const std::filesystem::path& path, const FileErrors& errors);
  /// A file that does not exist yet.
  static File create(const std::filesystem::path& path, const FileErrors& errors);
  /// A file that several processes write: made by the first of them.
  static File create_or_join(const std::filesystem::path& path, const FileErrors& errors);
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
  File(int descriptor, std::filesystem::path path, const FileErrors& errors);
  static File open_with(const std::filesystem::path& path, int flags, const FileErrors& errors,
                        std::string_view doing);
  int descriptor_ = -1;
  std::filesystem::path path_;
  FileErrors errors_ = ExitCode::environment;
};

/// The whole file as text; one longer than `limit_bytes` is an error.
std::string read_text(const std::filesystem::path& path, std::int64_t limit_bytes,
                      const FileErrors& errors);
/// Creates the file, writes, fsyncs.
void write_text(const std::filesystem::path& path, std::string_view text, const FileErrors& errors);
/// mkdir(2); one that is there is fine.
void make_folder(const std::filesystem::path& folder, const FileErrors& errors);
/// mkdir -p; what was made is durable.
void make_folders(const std::filesystem::path& folder, const FileErrors& errors);
/// Makes the entries of a folder durable.
void sync_folder(const std::filesystem::path& folder, const FileErrors& errors);
/// rename(2).
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to,
                 const FileErrors& errors);
/// Makes the entry of a file durable that was created or renamed. (In a folder that may be written
/// but not read, that is left to the system.)
void sync_entry(const std::filesystem::path& file, const FileErrors& errors);
/// rename_path() and sync_entry().
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to,
                    const FileErrors& errors);

}  // namespace tessera
