// SPDX-License-Identifier: Apache-2.0
#include "save/shard_writer.hpp"

#include <algorithm>
#include <utility>

#include "format/combined_writes.hpp"
#include "format/hdf5_file.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"

namespace tessera::checkpoint {
namespace {

/// The largest number of dimensions; the box table has that many columns for offsets and for
/// ranges.
std::int64_t dims_of(const std::vector<PlannedBox>& boxes) {
  std::size_t dims = 0;
  for (const PlannedBox& planned : boxes) dims = std::max(dims, planned.box.extent.size());
  return static_cast<std::int64_t>(dims);
}

std::int64_t total_blocks(const std::vector<PlannedBox>& boxes) {
  std::int64_t blocks = 0;
  for (const PlannedBox& planned : boxes) blocks += blocks_in(planned.bytes);
  return blocks;
}

std::int64_t estimated_metadata_bytes(const std::vector<PlannedBox>& boxes,
                                      std::span<const TensorInfo> tensors) {
  std::int64_t bytes = 16384;
  for (const PlannedBox& planned : boxes)
    bytes += 1024 + 2 * static_cast<std::int64_t>(
                            tensors[static_cast<std::size_t>(planned.tensor)].name.size());
  return bytes;
}

std::vector<std::int64_t> tensor_numbers(const std::vector<PlannedBox>& boxes) {
  std::vector<std::int64_t> numbers;
  for (const PlannedBox& planned : boxes) numbers.push_back(planned.tensor);
  return numbers;
}

bool is_of(const ShardLayout& layout, const Writers& writers, const std::vector<PlannedBox>& boxes,
           std::span<const TensorInfo> tensors) {
  const auto same_tensor = [](const TensorInfo& a, const TensorInfo& b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
  };
  const auto same_box = [](const PlannedBox& a, const PlannedBox& b) {
    return a.tensor == b.tensor && a.writer == b.writer && a.box == b.box;
  };
  return layout.writers == writers && std::ranges::equal(layout.tensors, tensors, same_tensor) &&
         std::ranges::equal(layout.boxes, boxes, same_box);
}

template <class Word>
void write_table(const File& file, TableRecord& table, const std::vector<Word>& words) {
  table.crc = crc32c(0, words.data(), words.size() * sizeof(Word));
  file.write(words.data(), words.size() * sizeof(Word), table.offset);
}

}  // namespace

ShardWriter::ShardWriter(std::filesystem::path path, const Writers& writers,
                         std::vector<PlannedBox> boxes, std::span<const TensorInfo> tensors,
                         std::shared_ptr<const ShardLayout> layout)
    : path_(std::move(path)),
      boxes_(std::move(boxes)),
      tensors_(tensors),
      is_shared_(writers.size() > 1),
      layout_(std::move(layout)) {
  std::stable_sort(boxes_.begin(), boxes_.end(),
                   [](const PlannedBox& a, const PlannedBox& b) { return a.tensor < b.tensor; });
  if (!layout_ || !is_of(*layout_, writers, boxes_, tensors_)) layout_ = lay_out(writers);
  for (std::size_t i = 0; i < boxes_.size(); ++i) boxes_[i].offset = layout_->boxes[i].offset;
  shard_ = layout_->shard;
  shard_.name = path_.filename().string();
}

std::shared_ptr<const ShardLayout> ShardWriter::lay_out(const Writers& writers) const {
  auto layout = std::make_shared<ShardLayout>();
  layout->writers = writers;
  layout->tensors.assign(tensors_.begin(), tensors_.end());
  layout->boxes = boxes_;
  ShardRecord& shard = layout->shard;
  shard.box_dims = dims_of(boxes_);
  shard.boxes.count = static_cast<std::int64_t>(boxes_.size());
  shard.checksums.count = total_blocks(boxes_);
  shard.tensors = few_runs(tensor_numbers(boxes_));
  Hdf5File file(path_, estimated_metadata_bytes(boxes_, tensors_));
  file.attribute("format",
                 fmt::format("tessera-checkpoint {}.{} shard", kFormatMajor, kFormatMinor));
  shard.boxes.offset = file.add_contiguous("tessera/boxes", DType::i64,
                                           {shard.boxes.count, shard.box_row_bytes() / 8});
  shard.checksums.offset = file.add_checksums("tessera/crc32c", shard.checksums.count);
  std::int64_t of_same_tensor = 0;
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    const TensorInfo& tensor = tensors_[static_cast<std::size_t>(boxes_[i].tensor)];
    of_same_tensor = i > 0 && boxes_[i - 1].tensor == boxes_[i].tensor ? of_same_tensor + 1 : 0;
    const std::string name = dataset_name(tensor.name, of_same_tensor);
    const Origin origin{tensor.shape, boxes_[i].box.offset,
                        writers[static_cast<std::size_t>(boxes_[i].writer)]};
    layout->boxes[i].offset =
        file.add_contiguous(name, tensor.dtype, boxes_[i].box.extent, &origin);
    layout->boxes[i].data = nullptr;
  }
  file.close();
  layout->structure = file.take_image();
  shard.bytes = layout->structure.size();
  return layout;
}

std::vector<std::uint32_t> ShardWriter::write_boxes(int writer, const Fetch& fetch) {
  file_ = is_shared_ ? File::create_or_join(path_, ExitCode::checkpoint)
                     : File::create(path_, ExitCode::checkpoint);
  std::vector<std::uint32_t> checksums;
  CombinedWrites writes(*file_);
  for (const PlannedBox& planned : boxes_) {
    if (planned.writer != writer) continue;
    const std::byte* data = fetch(planned);
    for (std::int64_t at = 0; at < planned.bytes; at += kBlockBytes) {
      const auto bytes = static_cast<std::size_t>(std::min(kBlockBytes, planned.bytes - at));
      checksums.push_back(crc32c(0, data + at, bytes));
      writes.write(data + at, bytes, planned.offset + at);
      if (bytes == kBlockBytes) file_->begin_flush(planned.offset + at, kBlockBytes);
    }
  }
  writes.flush();
  return checksums;
}

std::vector<std::uint32_t> ShardWriter::in_order_of_boxes(
    std::span<const std::vector<std::uint32_t>> checksums) const {
  std::vector<std::uint32_t> ordered;
  std::vector<std::size_t> taken(checksums.size(), 0);
  for (const PlannedBox& planned : boxes_) {
    const auto writer = static_cast<std::size_t>(planned.writer);
    const auto blocks = static_cast<std::size_t>(blocks_in(planned.bytes));
    TESSERA_EXPECT(taken[writer] + blocks <= checksums[writer].size(),
                   "{}: writer {} gave {} checksums", path_.string(), writer,
                   checksums[writer].size());
    const auto from = checksums[writer].begin() + static_cast<std::ptrdiff_t>(taken[writer]);
    ordered.insert(ordered.end(), from, from + static_cast<std::ptrdiff_t>(blocks));
    taken[writer] += blocks;
  }
  return ordered;
}

std::vector<std::int64_t> ShardWriter::box_words() const {
  std::vector<std::int64_t> words;
  const auto append = [&](const Shape& numbers) {
    words.insert(words.end(), numbers.begin(), numbers.end());
    words.insert(words.end(), static_cast<std::size_t>(shard_.box_dims) - numbers.size(), 0);
  };
  for (const PlannedBox& planned : boxes_) {
    words.push_back(planned.tensor);
    words.push_back(planned.offset);
    append(planned.box.offset);
    append(planned.box.extent);
  }
  return words;
}

ShardRecord ShardWriter::finish(std::span<const std::vector<std::uint32_t>> checksums) {
  const std::vector<std::int64_t> words = box_words();
  write_table(*file_, shard_.checksums, in_order_of_boxes(checksums));
  write_table(*file_, shard_.boxes, words);
  const BoxTable table(words, shard_, {tensors_.begin(), tensors_.end()}, path_);
  const std::vector<Range> covered = covered_ranges(table, shard_, path_);
  layout_->structure.store(*file_, covered);
  shard_.header_crc = header_checksum(layout_->structure, shard_.bytes, covered);
  file_->sync();
  file_->close();
  file_.reset();
  return shard_;
}

}  // namespace tessera::checkpoint
