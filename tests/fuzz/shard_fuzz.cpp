// SPDX-License-Identifier: Apache-2.0
// A shard file and its record in the manifest: the record's numbers, then the file. Checksums are
// made to fit, those of tables, blocks and header, so that the readers behind them are reached.
#include "format/shard_file.hpp"
#include "input.hpp"
#include "load/checkpoint_reader.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"

using namespace tessera;
using namespace tessera::checkpoint;

namespace {

constexpr const char* kName = "shard.h5";

Manifest manifest_of(fuzz::Front& input) {
  Manifest manifest;
  manifest.extra = "{}";
  manifest.tensors = {{"a", DType::f32, {4, 6}}, {"b", DType::bf16, {3}},
                      {"c", DType::i64, {}},     {"d", DType::f32, {0, 5}},
                      {"e", DType::u8, {300}},   {"f", DType::f64, {1 << 20, 1 << 20}}};
  manifest.tensors.resize(input.number<std::uint8_t>() % 7);
  ShardRecord shard;
  shard.name = kName;
  shard.box_dims = input.number<std::uint8_t>() % 34;
  shard.boxes = {input.number<std::uint16_t>(), input.number<std::uint8_t>(), 0};
  shard.checksums = {input.number<std::uint16_t>(), input.number<std::uint8_t>(), 0};
  shard.tensors = {{input.number<std::uint8_t>() % 8, input.number<std::uint8_t>() % 8}};
  shard.bytes = static_cast<std::int64_t>(input.rest().size());
  manifest.shards = {shard};
  return manifest;
}

bool lies_in_file(const TableRecord& table, std::int64_t row_bytes, const ShardRecord& shard) {
  return table.offset <= shard.bytes && table.count <= (shard.bytes - table.offset) / row_bytes;
}

/// The checksum of each block, written into the file's own table, then those of the tables and of
/// the header.
void seal(Manifest& manifest, std::string& bytes, const fuzz::InputFolder& folder) {
  ShardRecord& shard = manifest.shards.front();
  if (!lies_in_file(shard.boxes, shard.box_row_bytes(), shard) ||
      !lies_in_file(shard.checksums, 4, shard))
    return;
  std::vector<std::int64_t> words(
      static_cast<std::size_t>(shard.boxes.count * shard.box_row_bytes() / 8));
  const auto table_bytes = words.size() * 8;
  if (table_bytes > 0) std::memcpy(words.data(), bytes.data() + shard.boxes.offset, table_bytes);
  fuzz::takes({ExitCode::checkpoint}, [&] {
    const BoxTable boxes(words, shard, manifest.tensors, kName);
    for (std::int64_t b = 0; b < boxes.size(); ++b) {  // boxes of a small file have one block each
      const auto crc =
          crc32c(0, bytes.data() + boxes.offset(b), static_cast<std::size_t>(boxes.bytes(b)));
      std::memcpy(bytes.data() + shard.checksums.offset + 4 * boxes.first_block(b), &crc, 4);
    }
  });
  shard.boxes.crc = crc32c(0, bytes.data() + shard.boxes.offset, table_bytes);
  shard.checksums.crc = crc32c(0, bytes.data() + shard.checksums.offset,
                               static_cast<std::size_t>(shard.checksums.count * 4));
  const File file = File::open_to_read(folder.put(kName, bytes), ExitCode::checkpoint);
  fuzz::takes({ExitCode::checkpoint}, [&] {
    const ShardTables tables = read_tables(file, shard, manifest.tensors);
    shard.header_crc =
        header_checksum(file, shard.bytes, covered_ranges(tables.boxes, shard, kName));
  });
}

/// What was found to be valid must load.
void read_some(const CheckpointReader& opened, bool valid) {
  std::vector<std::byte> out(4096);
  for (const TensorInfo& tensor : opened.tensors()) {
    TensorSlice slice{tensor.name, tensor.dtype, tensor.shape, whole(tensor.shape)};
    if (tensor.name == "f") slice.box = {{1, 1}, {2, 3}};
    if (!fuzz::takes({ExitCode::checkpoint}, [&] { opened.read(slice, out.data()); }) && valid)
      fuzz::found("a valid checkpoint does not load");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  Manifest manifest = manifest_of(input);
  std::string bytes(input.rest());
  folder.put(kName, bytes);
  seal(manifest, bytes, folder);
  const std::string text = to_text(manifest);
  bool valid = false;
  if (size % 4 ==
      0) {  // the verifier parses the manifest once more, which takes as long as the rest
    folder.put(kManifestName, text);
    valid = verify(folder.path(), true).empty();
  }
  if (fuzz::takes({ExitCode::checkpoint}, [&] { manifest = parse_manifest(text, kManifestName); }))
    read_some(CheckpointReader(std::make_shared<CheckpointReader::Impl>(folder.path(), manifest)),
              valid);
  return 0;
}
