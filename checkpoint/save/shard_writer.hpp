// SPDX-License-Identifier: Apache-2.0
// Writes one shard file: libhdf5 lays it out in memory, plain writes fill it. Several processes may
// fill one file: each makes the same writer, and what they write does not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/manifest.hpp"
#include "format/shard_file.hpp"
#include "format/sparse_image.hpp"
#include "save/shard_plan.hpp"
#include "tessera/base/file.hpp"

namespace tessera::checkpoint {

/// Who writes a file together: names for the attributes, in the order of their numbers.
using Writers = std::vector<std::string>;

/// Where everything is in a file, and for which boxes. Saves of one run have the same, and libhdf5
/// takes its time.
struct ShardLayout {
  Writers writers;
  std::vector<TensorInfo> tensors;
  std::vector<PlannedBox> boxes;  ///< sorted by tensor, with offsets, without data
  ShardRecord shard;              ///< but for its name and what the values decide
  SparseImage structure;
};

class ShardWriter {
 public:
  /// Lays the file out: a dataset for each box, sorted by tensor, and both tables; or takes
  /// `layout`, where that is of the same boxes. `tensors` must outlive the writer. Makes no file
  /// call. Processes that give the same boxes, writers and tensors get the same layout.
  ShardWriter(std::filesystem::path path, const Writers& writers, std::vector<PlannedBox> boxes,
              std::span<const TensorInfo> tensors,
              std::shared_ptr<const ShardLayout> layout = nullptr);

  /// For the next writer.
  const std::shared_ptr<const ShardLayout>& layout() const { return layout_; }

  /// Gives the bytes of a box; they are used before the next call.
  using Fetch = std::function<const std::byte*(const PlannedBox&)>;
  /// Creates the file, with several writers unless another one has, and writes the boxes of
  /// `writer`. Gives the checksums of their blocks.
  std::vector<std::uint32_t> write_boxes(int writer, const Fetch& fetch);
  /// Makes what this process wrote durable.
  void sync() const { file_->sync(); }
  /// By one of the writers, when all have written: the structure and the tables, durable.
  /// `checksums` are those that write_boxes() gave each writer.
  ShardRecord finish(std::span<const std::vector<std::uint32_t>> checksums);

 private:
  std::shared_ptr<const ShardLayout> lay_out(const Writers& writers) const;
  std::vector<std::int64_t> box_words() const;
  std::vector<std::uint32_t> in_order_of_boxes(
      std::span<const std::vector<std::uint32_t>> checksums) const;

  std::filesystem::path path_;
  std::vector<PlannedBox> boxes_;
  std::span<const TensorInfo> tensors_;
  bool is_shared_;
  std::shared_ptr<const ShardLayout> layout_;
  ShardRecord shard_;
  std::optional<File> file_;
};

}  // namespace tessera::checkpoint
