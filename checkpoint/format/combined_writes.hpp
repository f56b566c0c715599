// SPDX-License-Identifier: Apache-2.0
// Small writes that follow each other in a file, made as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tessera/base/file.hpp"

namespace tessera::checkpoint {

class CombinedWrites {
 public:
  explicit CombinedWrites(const File& file) : file_(file) {}
  CombinedWrites(const CombinedWrites&) = delete;
  CombinedWrites& operator=(const CombinedWrites&) = delete;

  /// Keeps the bytes back when they are few; large pieces are written at once.
  void write(const void* data, std::size_t bytes, std::int64_t offset);
  /// Writes what was kept back; without it that is lost.
  void flush();

 private:
  const File& file_;
  std::int64_t begin_ = 0;
  std::vector<std::byte> kept_;
};

}  // namespace tessera::checkpoint
