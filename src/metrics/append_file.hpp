// SPDX-License-Identifier: Apache-2.0
// A file that grows for as long as a run goes.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera::metrics {

/// Not tessera::File: this one may be a pipe, and takes back the part of a line that was written
/// before the disk was full. Every failure throws Error(environment).
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path file);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// All of `text`, or an Error and (of a regular file) the file as it was before the call.
  void write(std::string_view text);
  const std::filesystem::path& path() const noexcept { return file_; }

 private:
  std::filesystem::path file_;
  int descriptor_;
};

}  // namespace tessera::metrics
