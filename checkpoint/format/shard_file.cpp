// SPDX-License-Identifier: Apache-2.0
#include "format/shard_file.hpp"

#include <algorithm>

#include "tessera/base/box.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"

namespace tessera::checkpoint {
namespace {

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& why) {
  fail(ExitCode::checkpoint, "{} is damaged ({})", path.string(), why);
}

template <class Word>
std::vector<Word> read_table(const File& file, const TableRecord& table, std::int64_t words_per_row,
                             const char* what) {
  std::vector<Word> words(static_cast<std::size_t>(table.count * words_per_row));
  file.read(words.data(), words.size() * sizeof(Word), table.offset);
  if (crc32c(0, words.data(), words.size() * sizeof(Word)) != table.crc)
    damaged(file.path(), fmt::format("the checksum of its {} table does not match", what));
  return words;
}

}  // namespace

BoxTable::BoxTable(std::vector<std::int64_t> words, const ShardRecord& shard,
                   const std::vector<TensorInfo>& tensors, const std::filesystem::path& path)
    : words_(std::move(words)), row_words_(shard.box_row_bytes() / 8) {
  for (std::int64_t box = 0; box < shard.boxes.count; ++box) check_row(box, shard, tensors, path);
  if (first_block(size()) != shard.checksums.count)
    damaged(path,
            fmt::format("{} blocks and {} checksums", first_block_.back(), shard.checksums.count));
}

/// Appends what follows from the row, after checking every number in it.
void BoxTable::check_row(std::int64_t box, const ShardRecord& shard,
                         const std::vector<TensorInfo>& tensors,
                         const std::filesystem::path& path) {
  const std::int64_t number = tensor(box), begin = offset(box);
  if (number < 0 || number >= static_cast<std::int64_t>(tensors.size()) ||
      (box > 0 && number < tensor(box - 1)) || !shard.may_hold(number))
    damaged(path, fmt::format("box {} is of tensor {}, which is not in this file", box, number));
  const TensorInfo& info = tensors[static_cast<std::size_t>(number)];
  const std::size_t dims = info.shape.size();
  if (static_cast<std::int64_t>(dims) > shard.box_dims ||
      !lies_in(this->box(box, dims), info.shape))
    damaged(path, fmt::format("box {} extends beyond tensor {}", box, info.name));
  const auto bytes = checked_bytes(this->box(box, dims).extent, info.dtype);
  if (!bytes || *bytes == 0 || begin < 0 || begin > shard.bytes || *bytes > shard.bytes - begin)
    damaged(path, fmt::format("box {} of {} extends beyond the file", box, info.name));
  bytes_.push_back(*bytes);
  first_block_.push_back(first_block_.back() + blocks_in(*bytes));
}

Box BoxTable::box(std::int64_t box, std::size_t dims) const {
  const std::int64_t *offsets = row(box) + 2, *ranges = offsets + (row_words_ - 2) / 2;
  return {Shape(offsets, offsets + dims), Shape(ranges, ranges + dims)};
}

Range BoxTable::boxes_of(std::int64_t tensor_number) const {
  const auto first_not_below = [&](std::int64_t number) {
    std::int64_t low = 0, high = size();
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (tensor(middle) < number)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  const std::int64_t begin = first_not_below(tensor_number);
  return {begin, first_not_below(tensor_number + 1) - begin};
}

ShardTables read_tables(const File& file, const ShardRecord& shard,
                        const std::vector<TensorInfo>& tensors) {
  require(file.size() == shard.bytes, ExitCode::checkpoint,
          "{} is damaged (it has {} bytes, {} were written)", file.path().string(), file.size(),
          shard.bytes);
  return {BoxTable(read_table<std::int64_t>(file, shard.boxes, shard.box_row_bytes() / 8, "box"),
                   shard, tensors, file.path()),
          read_table<std::uint32_t>(file, shard.checksums, 1, "checksum")};
}

std::vector<Range> covered_ranges(const BoxTable& boxes, const ShardRecord& shard,
                                  const std::filesystem::path& path) {
  std::vector<Range> ranges{{shard.boxes.offset, shard.boxes.count * shard.box_row_bytes()},
                            {shard.checksums.offset, shard.checksums.count * 4}};
  for (std::int64_t box = 0; box < boxes.size(); ++box)
    ranges.push_back({boxes.offset(box), boxes.bytes(box)});
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i - 1].end() > ranges[i].begin)
      damaged(path, fmt::format("two boxes overlap at byte {}", ranges[i].begin));
  return ranges;
}

namespace {

/// `read(data, bytes, offset)` gives the file's bytes.
template <class Read>
std::uint32_t checksum_outside(const std::vector<Range>& ranges, std::int64_t file_bytes,
                               const Read& read) {
  std::vector<char> buffer;
  std::uint32_t crc = 0;
  std::int64_t at = 0;
  const auto add_until = [&](std::int64_t end) {
    for (; at < end; at += static_cast<std::int64_t>(buffer.size())) {
      buffer.resize(static_cast<std::size_t>(std::min(end - at, kBlockBytes)));
      read(buffer.data(), buffer.size(), at);
      crc = crc32c(crc, buffer.data(), buffer.size());
    }
  };
  for (const Range& range : ranges) {
    add_until(range.begin);
    at = range.end();
  }
  add_until(file_bytes);
  return crc;
}

}  // namespace

std::uint32_t header_checksum(const File& file, std::int64_t file_bytes,
                              const std::vector<Range>& ranges) {
  return checksum_outside(ranges, file_bytes, [&](char* data, std::size_t bytes, std::int64_t at) {
    file.read(data, bytes, at);
  });
}

std::uint32_t header_checksum(const SparseImage& image, std::int64_t file_bytes,
                              const std::vector<Range>& ranges) {
  return checksum_outside(ranges, file_bytes, [&](char* data, std::size_t bytes, std::int64_t at) {
    image.read(at, data, bytes);
  });
}

std::string dataset_name(const std::string& tensor, std::int64_t number) {
  return number == 0 ? tensor : fmt::format("{}#{}", tensor, number);
}

}  // namespace tessera::checkpoint
