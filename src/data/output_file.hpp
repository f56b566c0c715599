// SPDX-License-Identifier: Apache-2.0
// A file written aside and renamed into place once it is whole and on the disk; dropped otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera::data {

class OutputFile {
 public:
  /// Makes the folder too, if it is missing. Throws Error(environment), as every member does, with
  /// the system's reason.
  explicit OutputFile(std::filesystem::path path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  void write(std::string_view bytes);
  /// Overwrites bytes at the beginning, which must have been written before.
  void rewrite_beginning(std::string_view bytes);
  /// Flushes, syncs and renames.
  void commit();

 private:
  void flush();
  void write_at(std::string_view bytes, std::uint64_t offset);
  [[noreturn]] void fail_with_errno(const char* what) const;

  std::filesystem::path path_, aside_;
  int descriptor_ = -1;
  std::string buffer_;
  std::uint64_t written_ = 0;
};

}  // namespace tessera::data
