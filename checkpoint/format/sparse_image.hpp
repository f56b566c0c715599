// SPDX-License-Identifier: Apache-2.0
// A file's contents in memory, where most of it is not there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "tessera/base/file.hpp"
#include "tessera/base/shard.hpp"

namespace tessera::checkpoint {

/// A file's bytes: those written, zero elsewhere.
class SparseImage {
 public:
  void write(std::int64_t offset, const void* data, std::size_t bytes);
  void read(std::int64_t offset, void* data, std::size_t bytes) const;
  void resize(std::int64_t bytes) { bytes_ = bytes; }
  std::int64_t size() const { return bytes_; }
  /// Puts the pages that were written into `file`, but for the ranges of bytes in `except`
  /// (ascending, disjoint), and gives it its size.
  void store(const File& file, std::span<const Range> except = {}) const;

 private:
  static constexpr std::int64_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;
  template <class Visit>
  static void for_each_page(std::int64_t offset, std::size_t bytes, const Visit& visit);
  std::map<std::int64_t, std::unique_ptr<Page>> pages_;
  std::int64_t bytes_ = 0;
};

}  // namespace tessera::checkpoint
