// SPDX-License-Identifier: Apache-2.0
#include "load/shard_loader.hpp"

#include <algorithm>

#include "format/aligned_memory.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/convert.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"

namespace tessera::checkpoint {
namespace {

constexpr std::int64_t kReadBytes = 8 * kBlockBytes;  // the most that one read takes
constexpr std::int64_t kWorthReadingBytes = std::int64_t{64}
                                            << 10;  // a gap this short is read rather than skipped

/// Bytes of a file, fetched ahead up to a limit that the caller knows.
class ReadAhead {
 public:
  explicit ReadAhead(const File& file) : file_(file) {}
  /// Bytes [begin, begin + bytes); what follows them up to `limit` may be fetched with them.
  const std::byte* get(std::int64_t begin, std::int64_t bytes, std::int64_t limit) {
    if (begin < begin_ || begin + bytes > begin_ + bytes_) {
      bytes_ = std::max(bytes, std::min(kReadBytes, limit - begin));
      begin_ = begin;
      data_ = memory_.reserve(static_cast<std::size_t>(bytes_));
      file_.read(data_, static_cast<std::size_t>(bytes_), begin);
    }
    return data_ + (begin - begin_);
  }

 private:
  const File& file_;
  std::int64_t begin_ = 0, bytes_ = 0;  ///< what is in memory
  std::byte* data_ = nullptr;
  AlignedMemory memory_;
};

/// What is copied from one stored box into one wanted one.
struct Copy {
  Want* want;
  std::int64_t box;
  RunCursor cursor;
  std::int64_t begin, end;  ///< bytes in the file that the touched blocks span
  std::int64_t read_limit;  ///< bytes up to here are wanted too, by this copy or those that follow
};

class ShardLoad {
 public:
  ShardLoad(const File& file, const BoxTable& boxes, std::span<const std::uint32_t> checksums,
            const std::vector<TensorInfo>& tensors)
      : file_(file), boxes_(boxes), checksums_(checksums), tensors_(tensors), bytes_(file) {}

  void run(std::span<Want> wants) {
    for (Want& want : wants) add(want);
    std::sort(copies_.begin(), copies_.end(),
              [](const Copy& a, const Copy& b) { return a.begin < b.begin; });
    set_read_limits();
    for (Copy& copy : copies_) run(copy);
  }

 private:
  const TensorInfo& tensor_of(std::int64_t box) const {
    return tensors_[static_cast<std::size_t>(boxes_.tensor(box))];
  }
  std::int64_t width_of(std::int64_t box) const {
    return static_cast<std::int64_t>(size_of(tensor_of(box).dtype));
  }

  void add(Want& want) {
    const Range range = boxes_.boxes_of(want.tensor);
    for (std::int64_t b = range.begin; b < range.end(); ++b) {
      const Box stored = boxes_.box(b, want.view->slice.global_shape.size());
      const auto overlap = intersect(stored, want.view->slice.box);
      if (!overlap) continue;
      want.filled.add(*overlap);
      const RunCursor cursor(*overlap, stored, want.view->slice.box);
      const std::int64_t first = cursor.source() * width_of(b) / kBlockBytes * kBlockBytes;
      const std::int64_t end =
          std::min(boxes_.bytes(b), blocks_in(cursor.source_end() * width_of(b)) * kBlockBytes);
      copies_.push_back({&want, b, cursor, boxes_.offset(b) + first, boxes_.offset(b) + end, 0});
    }
  }

  /// A read may run on into the next job when the gap is short.
  void set_read_limits() {
    for (std::size_t i = copies_.size(); i-- > 0;) {
      const bool runs_on =
          i + 1 < copies_.size() && copies_[i + 1].begin - copies_[i].end < kWorthReadingBytes;
      copies_[i].read_limit =
          runs_on ? std::max(copies_[i].end, copies_[i + 1].read_limit) : copies_[i].end;
    }
  }

  void run(Copy& copy) {
    const std::int64_t block_elements = kBlockBytes / width_of(copy.box);
    while (!copy.cursor.done()) {
      const std::int64_t block = copy.cursor.source() / block_elements;
      if (read_in_place(copy, block, block_elements)) continue;
      copy_from_block(copy, checked_block(copy, block), block * block_elements,
                      (block + 1) * block_elements);
    }
  }

  std::int64_t bytes_of(std::int64_t box, std::int64_t block) const {
    return std::min(kBlockBytes, boxes_.bytes(box) - block * kBlockBytes);
  }

  /// A block that is wanted as it is needs no copy. False when this one is not.
  bool read_in_place(Copy& copy, std::int64_t block, std::int64_t block_elements) {
    const TensorSlice& slice = copy.want->view->slice;
    const std::int64_t bytes = bytes_of(copy.box, block), elements = bytes / width_of(copy.box);
    if (bytes < kWorthReadingBytes || slice.dtype != tensor_of(copy.box).dtype ||
        copy.cursor.source() != block * block_elements || copy.cursor.length() < elements)
      return false;
    std::byte* to =
        static_cast<std::byte*>(copy.want->view->data) + copy.cursor.target() * width_of(copy.box);
    file_.read(to, static_cast<std::size_t>(bytes), boxes_.offset(copy.box) + block * kBlockBytes);
    check_block(copy, block, to);
    copy.cursor.advance(elements);
    return true;
  }

  const std::byte* checked_block(const Copy& copy, std::int64_t block) {
    const std::byte* data = bytes_.get(boxes_.offset(copy.box) + block * kBlockBytes,
                                       bytes_of(copy.box, block), copy.read_limit);
    check_block(copy, block, data);
    return data;
  }

  void check_block(const Copy& copy, std::int64_t block, const std::byte* data) const {
    const std::int64_t bytes = bytes_of(copy.box, block);
    require(crc32c(0, data, static_cast<std::size_t>(bytes)) ==
                checksums_[static_cast<std::size_t>(boxes_.first_block(copy.box) + block)],
            ExitCode::checkpoint, "{} is damaged (the checksum of block {} of {} does not match)",
            file_.path().string(), block, tensor_of(copy.box).name);
  }

  /// Elements [begin, end) of the stored box are at `data`.
  void copy_from_block(Copy& copy, const std::byte* data, std::int64_t begin, std::int64_t end) {
    const TensorSlice& slice = copy.want->view->slice;
    const auto wanted_width = static_cast<std::int64_t>(size_of(slice.dtype));
    while (!copy.cursor.done() && copy.cursor.source() < end) {
      const std::int64_t count = std::min(copy.cursor.length(), end - copy.cursor.source());
      require(
          convert(
              data + (copy.cursor.source() - begin) * width_of(copy.box), tensor_of(copy.box).dtype,
              static_cast<std::byte*>(copy.want->view->data) + copy.cursor.target() * wanted_width,
              slice.dtype, count),
          ExitCode::checkpoint, "a value of {} in {} does not fit into {}", slice.name,
          file_.path().string(), name_of(slice.dtype));
      copy.cursor.advance(count);
    }
  }

  const File& file_;
  const BoxTable& boxes_;
  std::span<const std::uint32_t> checksums_;
  const std::vector<TensorInfo>& tensors_;
  ReadAhead bytes_;
  std::vector<Copy> copies_;
};

}  // namespace

void load_shard(const File& file, const BoxTable& boxes, std::span<const std::uint32_t> checksums,
                const std::vector<TensorInfo>& tensors, std::span<Want> wants) {
  ShardLoad(file, boxes, checksums, tensors).run(wants);
}

}  // namespace tessera::checkpoint
