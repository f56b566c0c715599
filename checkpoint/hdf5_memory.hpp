// A file driver for libhdf5 that keeps what it writes in memory, sparsely. When a write to disk fails under libhdf5,
// its file cannot be closed any more and the process crashes at exit (seen with 1.10.8 on a full disk); here such
// writes cannot fail, and the bytes reach the disk through our own File.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "file_io.hpp"

namespace tessera::checkpoint {

/// A file's bytes: those written, zero elsewhere.
class SparseImage {
 public:
  void write(std::int64_t offset, const void* data, std::size_t bytes);
  void read(std::int64_t offset, void* data, std::size_t bytes) const;
  void resize(std::int64_t bytes) { bytes_ = bytes; }
  std::int64_t size() const { return bytes_; }
  /// Puts the pages that were written into `file` and gives it its size.
  void store(const File& file) const;

 private:
  static constexpr std::int64_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;
  template <class Visit>
  static void for_each_page(std::int64_t offset, std::size_t bytes, const Visit& visit);
  std::map<std::int64_t, std::unique_ptr<Page>> pages_;
  std::int64_t bytes_ = 0;
};

/// Makes files that are created with the access list `access` live in `image`, which must outlive them.
herr_t use_memory_driver(hid_t access, SparseImage& image);

}  // namespace tessera::checkpoint
