// SPDX-License-Identifier: Apache-2.0
// A whole file, read-only, in the address space.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera::data {

class MappedFile {
 public:
  /// Throws Error(data) for what is not a readable regular file.
  explicit MappedFile(const std::filesystem::path& path);
  /// Maps what the descriptor is open on, which may be closed then; messages call it `path`.
  MappedFile(const std::filesystem::path& path, int descriptor);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  /// Its bytes; aligned to a page.
  std::string_view bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void map(int descriptor);

  std::filesystem::path path_;
  std::string_view bytes_;
};

}  // namespace tessera::data
