#include "index_file.hpp"

#include <algorithm>
#include <vector>

#include "hdf5_file.hpp"
#include "shard_file.hpp"
#include "shard_writer.hpp"
#include "tessera/base/log.hpp"
#include "tessera/checkpoint/crc32c.hpp"

namespace tessera::checkpoint {
namespace {

constexpr std::int64_t kMostBoxes = 1'000'000;

using Parts = std::vector<std::vector<VirtualPart>>;  // of each tensor

void add_parts(Parts& parts, const std::filesystem::path& folder, const ShardRecord& shard, const Manifest& manifest) {
  const File file = File::open_to_read(folder / shard.name, ExitCode::checkpoint);
  const BoxTable boxes = read_tables(file, shard, manifest.tensors).boxes;
  std::int64_t of_same_tensor = 0;
  for (std::int64_t b = 0; b < boxes.size(); ++b) {
    of_same_tensor = b > 0 && boxes.tensor(b) == boxes.tensor(b - 1) ? of_same_tensor + 1 : 0;
    const auto tensor = static_cast<std::size_t>(boxes.tensor(b));
    const TensorInfo& info = manifest.tensors[tensor];
    parts[tensor].push_back({shard.name, dataset_name(info.name, of_same_tensor), boxes.box(b, info.shape.size())});
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
  file.attribute("/", "format", fmt::format("tessera-checkpoint {}.{} index", kFormatMajor, kFormatMinor));
  file.attribute("/", "uuid", manifest.uuid);
  file.attribute("/", "step", std::vector<std::int64_t>{manifest.step});
  file.attribute("/", "mesh", manifest.mesh);
  file.attribute("/", "written", manifest.written);
  file.attribute("/", "versions", manifest.writer + ", " + hdf5_version());
  file.attribute("/", "config", manifest.config_toml);
  file.attribute("/", "state", manifest.extra);
}

}  // namespace

IndexRecord record_of(const File& file) {
  IndexRecord record{file.size(), 0};
  std::vector<char> buffer;
  for (std::int64_t at = 0; at < record.bytes; at += static_cast<std::int64_t>(buffer.size())) {
    buffer.resize(static_cast<std::size_t>(std::min(kBlockBytes, record.bytes - at)));
    file.read(buffer.data(), buffer.size(), at);
    record.crc = crc32c(record.crc, buffer.data(), buffer.size());
  }
  return record;
}

std::optional<IndexRecord> write_index(const std::filesystem::path& folder, const Manifest& manifest) {
  std::int64_t boxes = 0;
  for (const ShardRecord& shard : manifest.shards) boxes += shard.boxes.count;
  if (boxes > kMostBoxes) {
    log::info("{} boxes are too many for {}; it is left out", boxes, kIndexName);
    return std::nullopt;
  }
  Parts parts(manifest.tensors.size());
  for (const ShardRecord& shard : manifest.shards) add_parts(parts, folder, shard, manifest);
  File file = File::create(folder / kIndexName, ExitCode::checkpoint);
  Hdf5File index(file.path(), 65536);
  add_attributes(index, manifest);
  for (std::size_t i = 0; i < parts.size(); ++i) add_tensor(index, manifest.tensors[i], parts[i]);
  index.close();
  index.image().store(file);
  file.sync();
  const IndexRecord record = record_of(file);
  file.close();
  return record;
}

}  // namespace tessera::checkpoint
