// SPDX-License-Identifier: Apache-2.0
// A file that is written: the one place of the component that calls open, write and fsync.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tessera::metrics {

/// Every failure throws Error(environment): what could not be done, the file, the system's reason,
/// what to do.
class OutputFile {
 public:
  enum class Mode { truncate, append };

  OutputFile(std::filesystem::path file, Mode mode);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// All of `text`, or an Error and (of a regular file) the file as it was before the call.
  void write(std::string_view text);
  void sync();
  const std::filesystem::path& path() const noexcept { return file_; }

 private:
  std::filesystem::path file_;
  int descriptor_;
};

/// rename(2), then the folder's entry is flushed too, so that the new name survives a power
/// failure.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Throws Error(environment) from errno's value `code`.
[[noreturn]] void fail_writing(const std::filesystem::path& file, int code);

}  // namespace tessera::metrics
