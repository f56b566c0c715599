// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a shard file are: the box table, the checksum table, and what is left over for
// HDF5's own structures.
#pragma once

#include <cstdint>
#include <vector>

#include "format/manifest.hpp"
#include "format/sparse_image.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/file.hpp"

namespace tessera::checkpoint {

/// The box table of one shard file, in memory as in the file. Rows ascend by tensor number.
class BoxTable {
 public:
  BoxTable() = default;
  /// `words` are the rows as they are in the file: checked against the manifest, Error(checkpoint)
  /// names `path`.
  BoxTable(std::vector<std::int64_t> words, const ShardRecord& shard,
           const std::vector<TensorInfo>& tensors, const std::filesystem::path& path);

  std::int64_t size() const { return static_cast<std::int64_t>(first_block_.size()) - 1; }
  std::int64_t tensor(std::int64_t box) const { return row(box)[0]; }
  /// Bytes from the beginning of the file.
  std::int64_t offset(std::int64_t box) const { return row(box)[1]; }
  std::int64_t bytes(std::int64_t box) const { return bytes_[static_cast<std::size_t>(box)]; }
  Box box(std::int64_t box, std::size_t dims) const;
  /// Row of the checksum table for the box's first block; first_block(size()) is the number of all
  /// blocks.
  std::int64_t first_block(std::int64_t box) const {
    return first_block_[static_cast<std::size_t>(box)];
  }
  /// The boxes of one tensor.
  Range boxes_of(std::int64_t tensor) const;

 private:
  const std::int64_t* row(std::int64_t box) const { return words_.data() + box * row_words_; }
  void check_row(std::int64_t box, const ShardRecord& shard, const std::vector<TensorInfo>& tensors,
                 const std::filesystem::path& path);
  std::vector<std::int64_t> words_;
  std::int64_t row_words_ = 2;
  std::vector<std::int64_t> bytes_;
  std::vector<std::int64_t> first_block_{0};
};

/// Blocks of 4 MiB in a box of this many bytes.
inline std::int64_t blocks_in(std::int64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

/// Both tables of a shard, their checksums compared with the manifest.
struct ShardTables {
  BoxTable boxes;
  std::vector<std::uint32_t> checksums;
};
ShardTables read_tables(const File& file, const ShardRecord& shard,
                        const std::vector<TensorInfo>& tensors);

/// Boxes and tables, which checksums of their own cover, ascending. Error(checkpoint) when two
/// overlap.
std::vector<Range> covered_ranges(const BoxTable& boxes, const ShardRecord& shard,
                                  const std::filesystem::path& path);
/// The header checksum: of every byte of the file outside `ranges`.
std::uint32_t header_checksum(const File& file, std::int64_t file_bytes,
                              const std::vector<Range>& ranges);
/// The same of a structure that is still in memory.
std::uint32_t header_checksum(const SparseImage& image, std::int64_t file_bytes,
                              const std::vector<Range>& ranges);

/// The dataset that holds the `number`-th box (from 0) of a tensor in one file: "model/x",
/// "model/x#1", ...
std::string dataset_name(const std::string& tensor, std::int64_t number);

}  // namespace tessera::checkpoint
