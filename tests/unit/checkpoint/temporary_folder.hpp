// SPDX-License-Identifier: Apache-2.0
// A folder of its own for one test, removed afterwards.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tessera::checkpoint {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> number = 0;
    // In memory where that is possible: a save flushes often, which tells nothing about correctness
    // here.
    const std::filesystem::path shared = "/dev/shm";
    path_ =
        (::access(shared.c_str(), W_OK) == 0 ? shared : std::filesystem::temp_directory_path()) /
        ("tessera-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put(const std::filesystem::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

}  // namespace tessera::checkpoint
