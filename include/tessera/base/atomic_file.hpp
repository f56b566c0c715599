// SPDX-License-Identifier: Apache-2.0
// Files that are there whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/file.hpp"

namespace tessera {

/// A file that is written under a temporary name in the same folder. commit() makes it durable and
/// renames it; without commit() it is removed. Members throw as File does.
class AtomicFile {
 public:
  /// Throws Error(errors.kind) if `path` is a folder.
  explicit AtomicFile(std::filesystem::path path, const FileErrors& errors = ExitCode::environment);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// The file under its temporary name, to write at offsets. Not together with append().
  const File& file() const { return *file_; }
  /// Writes after what was appended before, buffered.
  void append(std::string_view bytes);
  /// Overwrites bytes at the beginning, which must have been appended before.
  void rewrite_beginning(std::string_view bytes);
  /// Flushes the contents, renames, and flushes the folder's entry.
  void commit();

 private:
  void flush();

  std::filesystem::path path_, aside_;
  FileErrors errors_;
  std::optional<File> file_;
  std::string buffer_;
  std::int64_t written_ = 0;
};

/// An AtomicFile of this text: a reader sees the old text or the new one.
void write_file_atomically(const std::filesystem::path& file, std::string_view text,
                           const FileErrors& errors = ExitCode::environment);

}  // namespace tessera
