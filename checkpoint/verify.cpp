#include <algorithm>

#include "box.hpp"
#include "index_file.hpp"
#include "read_manifest.hpp"
#include "shard_file.hpp"
#include "tessera/checkpoint/crc32c.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

class Verification {
 public:
  Verification(const fs::path& folder, bool deep) : folder_(folder), deep_(deep) {}

  std::vector<Finding> run(int part, int parts) {
    guarded(folder_ / kManifestName, [&] { manifest_ = read_manifest(folder_).manifest; });
    if (!findings_.empty()) return findings_;
    elements_.resize(manifest_.tensors.size());
    for (std::size_t i = static_cast<std::size_t>(part); i < manifest_.shards.size();
         i += static_cast<std::size_t>(parts))
      guarded(folder_ / manifest_.shards[i].name, [&] { check_shard(manifest_.shards[i]); });
    if (part == 0 && manifest_.index) guarded(folder_ / kIndexName, [&] { check_index(*manifest_.index); });
    if (parts == 1 && findings_.empty()) guarded(folder_ / kManifestName, [&] { check_cover(); });
    return findings_;
  }

 private:
  template <class Check>
  void guarded(const fs::path& file, const Check& check) {
    try {
      check();
    } catch (const std::exception& error) {
      findings_.push_back({file, error.what()});
    }
  }

  void check_shard(const ShardRecord& shard) {
    const File file = File::open_to_read(folder_ / shard.name, ExitCode::checkpoint);
    const ShardTables tables = read_tables(file, shard, manifest_.tensors);
    const auto extents = covered_extents(tables.boxes, shard, file.path());
    for (std::int64_t b = 0; b < tables.boxes.size(); ++b) {
      const auto tensor = static_cast<std::size_t>(tables.boxes.tensor(b));
      elements_[tensor] += element_count(tables.boxes.box(b, manifest_.tensors[tensor].shape.size()).extent);
    }
    if (!deep_) return;
    require(header_checksum(file, shard.bytes, extents) == shard.header_crc, ExitCode::checkpoint,
            "{} is damaged (the checksum of its header does not match)", file.path().string());
    for (std::int64_t b = 0; b < tables.boxes.size(); ++b) check_box(file, tables, b);
  }

  void check_box(const File& file, const ShardTables& tables, std::int64_t box) {
    const std::int64_t bytes = tables.boxes.bytes(box);
    for (std::int64_t k = 0; k < blocks_in(bytes); ++k) {
      buffer_.resize(static_cast<std::size_t>(std::min(kBlockBytes, bytes - k * kBlockBytes)));
      file.read(buffer_.data(), buffer_.size(), tables.boxes.offset(box) + k * kBlockBytes);
      require(crc32c(0, buffer_.data(), buffer_.size()) ==
                  tables.checksums[static_cast<std::size_t>(tables.boxes.first_block(box) + k)],
              ExitCode::checkpoint, "{} is damaged (the checksum of block {} of {} does not match)",
              file.path().string(), k, manifest_.tensors[static_cast<std::size_t>(tables.boxes.tensor(box))].name);
    }
  }

  void check_index(const IndexRecord& expected) {
    const File file = File::open_to_read(folder_ / kIndexName, ExitCode::checkpoint);
    require(file.size() == expected.bytes, ExitCode::checkpoint, "{} is damaged (it has {} bytes, {} were written)",
            file.path().string(), file.size(), expected.bytes);
    require(!deep_ || record_of(file).crc == expected.crc, ExitCode::checkpoint,
            "{} is damaged (its checksum does not match)", file.path().string());
  }

  void check_cover() {
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const TensorInfo& tensor = manifest_.tensors[i];
      require(elements_[i] == element_count(tensor.shape), ExitCode::checkpoint,
              "{} is damaged (its files hold {} of the {} elements of {})", folder_.string(), elements_[i],
              element_count(tensor.shape), tensor.name);
    }
  }

  fs::path folder_;
  bool deep_;
  Manifest manifest_;
  std::vector<std::int64_t> elements_;  // that the files hold of each tensor
  std::vector<std::byte> buffer_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> verify(const fs::path& step_folder, bool deep, int part, int parts) {
  return Verification(step_folder, deep).run(part, parts);
}

std::string describe(const std::vector<Finding>& findings, std::size_t limit) {
  std::string text;
  for (std::size_t i = 0; i < std::min(limit, findings.size()); ++i) text += (i == 0 ? "" : "; ") + findings[i].what;
  if (findings.size() > limit) text += fmt::format("; and {} more", findings.size() - limit);
  return text;
}

}  // namespace tessera::checkpoint
