#include "shard_writer.hpp"

#include <algorithm>
#include <unordered_map>

#include "hdf5_file.hpp"
#include "shard_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/crc32c.hpp"

namespace tessera::checkpoint {
namespace {

struct Numbered {
  Piece piece;
  std::int64_t tensor = 0;
  std::int64_t offset = 0;
};

std::vector<Numbered> numbered(std::vector<Piece> pieces, std::span<const TensorInfo> tensors) {
  std::unordered_map<std::string_view, std::int64_t> numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) numbers[tensors[i].name] = static_cast<std::int64_t>(i);
  std::vector<Numbered> sorted;
  for (Piece& piece : pieces) {
    const std::int64_t number = numbers.at(piece.slice->name);
    sorted.push_back({std::move(piece), number, 0});
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Numbered& a, const Numbered& b) { return a.tensor < b.tensor; });
  return sorted;
}

/// The largest number of dimensions; the box table has that many columns for offsets and for extents.
std::int64_t dims_of(const std::vector<Numbered>& pieces) {
  std::size_t dims = 0;
  for (const Numbered& n : pieces) dims = std::max(dims, n.piece.box.extent.size());
  return static_cast<std::int64_t>(dims);
}

std::int64_t total_blocks(const std::vector<Numbered>& pieces) {
  std::int64_t blocks = 0;
  for (const Numbered& n : pieces) blocks += blocks_in(n.piece.bytes);
  return blocks;
}

std::int64_t estimated_metadata_bytes(const std::vector<Numbered>& pieces) {
  std::int64_t bytes = 16384;
  for (const Numbered& n : pieces) bytes += 1024 + 2 * static_cast<std::int64_t>(n.piece.slice->name.size());
  return bytes;
}

/// Writes the structure with all datasets; fills in the offsets.
void lay_out(const File& to, const std::string& coord_name, std::vector<Numbered>& pieces, ShardRecord& shard) {
  Hdf5File file(to.path(), estimated_metadata_bytes(pieces));
  file.attribute("/", "format", fmt::format("tessera-checkpoint {}.{} shard", kFormatMajor, kFormatMinor));
  shard.boxes.offset = file.add_contiguous("tessera/boxes", DType::i64, {shard.boxes.count, shard.box_row_bytes() / 8});
  shard.checksums.offset = file.add_checksums("tessera/crc32c", shard.checksums.count);
  std::int64_t of_same_tensor = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const TensorSlice& slice = *pieces[i].piece.slice;
    of_same_tensor = i > 0 && pieces[i - 1].tensor == pieces[i].tensor ? of_same_tensor + 1 : 0;
    const std::string name = dataset_name(slice.name, of_same_tensor);
    pieces[i].offset = file.add_contiguous(name, slice.dtype, pieces[i].piece.box.extent);
    file.attribute(name, "global_shape", slice.global_shape);
    file.attribute(name, "offset", pieces[i].piece.box.offset);
    file.attribute(name, "coordinate", coord_name);
  }
  file.close();
  file.image().store(to);
  shard.bytes = file.image().size();
}

std::vector<std::int64_t> box_words(const std::vector<Numbered>& pieces, std::int64_t dims) {
  std::vector<std::int64_t> words;
  const auto append = [&](const Shape& numbers) {
    words.insert(words.end(), numbers.begin(), numbers.end());
    words.insert(words.end(), static_cast<std::size_t>(dims) - numbers.size(), 0);
  };
  for (const Numbered& n : pieces) {
    words.push_back(n.tensor);
    words.push_back(n.offset);
    append(n.piece.box.offset);
    append(n.piece.box.extent);
  }
  return words;
}

std::vector<std::uint32_t> write_pieces(const File& file, const std::vector<Numbered>& pieces) {
  std::vector<std::uint32_t> checksums;
  for (const Numbered& n : pieces)
    for (std::int64_t at = 0; at < n.piece.bytes; at += kBlockBytes) {
      const auto bytes = static_cast<std::size_t>(std::min(kBlockBytes, n.piece.bytes - at));
      checksums.push_back(crc32c(0, n.piece.data + at, bytes));
      file.write(n.piece.data + at, bytes, n.offset + at);
    }
  return checksums;
}

template <class Word>
void write_table(const File& file, TableRecord& table, const std::vector<Word>& words) {
  table.crc = crc32c(0, words.data(), words.size() * sizeof(Word));
  file.write(words.data(), words.size() * sizeof(Word), table.offset);
}

std::vector<std::int64_t> tensor_numbers(const std::vector<Numbered>& pieces) {
  std::vector<std::int64_t> numbers;
  for (const Numbered& n : pieces) numbers.push_back(n.tensor);
  return numbers;
}

}  // namespace

std::string dataset_name(const std::string& tensor, std::int64_t number) {
  return number == 0 ? tensor : fmt::format("{}#{}", tensor, number);
}

ShardRecord write_shard(const std::filesystem::path& path, const std::string& coord_name, std::vector<Piece> pieces,
                        std::span<const TensorInfo> tensors) {
  std::vector<Numbered> all = numbered(std::move(pieces), tensors);
  ShardRecord shard;
  shard.name = path.filename().string();
  shard.box_dims = dims_of(all);
  shard.boxes.count = static_cast<std::int64_t>(all.size());
  shard.checksums.count = total_blocks(all);
  shard.tensors = few_runs(tensor_numbers(all));
  File file = File::create(path, ExitCode::checkpoint);
  lay_out(file, coord_name, all, shard);
  const std::vector<std::int64_t> words = box_words(all, shard.box_dims);
  write_table(file, shard.checksums, write_pieces(file, all));
  write_table(file, shard.boxes, words);
  const BoxTable boxes(words, shard, {tensors.begin(), tensors.end()}, path);
  shard.header_crc = header_checksum(file, shard.bytes, covered_extents(boxes, shard, path));
  file.sync();
  file.close();
  return shard;
}

}  // namespace tessera::checkpoint
