// A whole file, read-only, in the address space.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera::data {

class MappedFile {
 public:
  /// Throws Error(data) for what is no readable regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  /// Its bytes; aligned to a page.
  std::string_view bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::string_view bytes_;
};

}  // namespace tessera::data
