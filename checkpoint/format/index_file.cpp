// SPDX-License-Identifier: Apache-2.0
#include "format/index_file.hpp"

#include <algorithm>
#include <vector>

#include "format/hdf5_file.hpp"
#include "format/shard_file.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/log.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBoxes = 1'000'000;
constexpr std::string_view kIndexSealKey = "\ncrc32c ";
constexpr std::int64_t kIndexSealBytes = 8 + 8 + 1;  // key, eight digits, end of line

using Parts = std::vector<std::vector<VirtualPart>>;  // of each tensor

void add_parts(Parts& parts, const fs::path& folder, const ShardRecord& shard,
               const Manifest& manifest) {
  const File file = File::open_to_read(folder / shard.name, ExitCode::checkpoint);
  const BoxTable boxes = read_tables(file, shard, manifest.tensors).boxes;
  std::int64_t of_same_tensor = 0;
  for (std::int64_t b = 0; b < boxes.size(); ++b) {
    of_same_tensor = b > 0 && boxes.tensor(b) == boxes.tensor(b - 1) ? of_same_tensor + 1 : 0;
    const auto tensor = static_cast<std::size_t>(boxes.tensor(b));
    const TensorInfo& info = manifest.tensors[tensor];
    parts[tensor].push_back(
        {shard.name, dataset_name(info.name, of_same_tensor), boxes.box(b, info.shape.size())});
  }
}

void add_tensor(Hdf5File& file, const TensorInfo& tensor, const std::vector<VirtualPart>& parts) {
  if (parts.empty())
    file.add_contiguous(tensor.name, tensor.dtype, tensor.shape);  // it has no elements
  else if (tensor.shape.empty())
    file.add_link(tensor.name, parts.front().file, parts.front().dataset);
  else
    file.add_virtual(tensor.name, tensor.dtype, tensor.shape, parts);
}

void add_attributes(Hdf5File& file, const Manifest& manifest) {
  file.attribute("format",
                 fmt::format("tessera-checkpoint {}.{} index", kFormatMajor, kFormatMinor));
  file.attribute("uuid", manifest.uuid);
  file.attribute("step", std::vector<std::int64_t>{manifest.step});
  file.attribute("mesh", manifest.mesh);
  file.attribute("written", manifest.written);
  file.attribute("versions", manifest.writer + ", " + Hdf5File::version());
  file.attribute("config", manifest.config_toml);
  file.attribute("state", manifest.extra);
}

std::string index_seal(std::uint32_t crc) { return fmt::format("{}{:08x}\n", kIndexSealKey, crc); }

/// Of the checkpoint's UUID and then the first `bytes` bytes, read in blocks: another checkpoint's
/// index does not match.
std::uint32_t checksum(const File& file, std::int64_t bytes, const std::string& uuid) {
  std::uint32_t crc = crc32c(0, uuid.data(), uuid.size());
  std::vector<char> buffer;
  for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(buffer.size())) {
    buffer.resize(static_cast<std::size_t>(std::min(kBlockBytes, bytes - at)));
    file.read(buffer.data(), buffer.size(), at);
    crc = crc32c(crc, buffer.data(), buffer.size());
  }
  return crc;
}

}  // namespace

void write_index(const fs::path& folder, const fs::path& step_folder, const Manifest& manifest) {
  std::int64_t boxes = 0;
  for (const ShardRecord& shard : manifest.shards) boxes += shard.boxes.count;
  if (boxes > kMostBoxes)
    return log::info("{} boxes are too many for {}; it is not written", boxes,
                     (step_folder / kIndexName).string());
  Parts parts(manifest.tensors.size());
  for (const ShardRecord& shard : manifest.shards) add_parts(parts, step_folder, shard, manifest);
  const fs::path temporary = folder / (std::string(kIndexName) + ".partial-" + manifest.uuid);
  Hdf5File index(temporary, 65536);
  add_attributes(index, manifest);
  for (std::size_t i = 0; i < parts.size(); ++i) add_tensor(index, manifest.tensors[i], parts[i]);
  index.close();
  File file = File::create(temporary, ExitCode::checkpoint);
  index.image().store(file);
  const std::string seal = index_seal(checksum(file, file.size(), manifest.uuid));
  file.write(seal.data(), seal.size(), file.size());
  file.sync();
  file.close();
  rename_path(temporary, step_folder / kIndexName, ExitCode::checkpoint);
}

void check_index(const File& file, const std::string& uuid, bool deep) {
  std::string seal(kIndexSealBytes, ' ');
  const std::int64_t bytes = file.size() - kIndexSealBytes;
  if (bytes >= 0) file.read(seal.data(), seal.size(), bytes);
  require(seal.starts_with(kIndexSealKey), ExitCode::checkpoint,
          "{} is damaged (its checksum is missing)", file.path().string());
  require(!deep || seal == index_seal(checksum(file, bytes, uuid)), ExitCode::checkpoint,
          "{} is damaged (its checksum does not match)", file.path().string());
}

}  // namespace tessera::checkpoint
