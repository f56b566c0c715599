// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "format/aligned_memory.hpp"
#include "format/index_file.hpp"
#include "format/read_manifest.hpp"
#include "format/shard_file.hpp"
#include "format/step_folder.hpp"
#include "load/cover.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLongestHint = 4096;

class Verification {
 public:
  Verification(const fs::path& folder, bool deep) : folder_(folder), deep_(deep) {}

  std::vector<Finding> run(int part, int parts) {
    TESSERA_EXPECT(0 <= part && part < parts, "part {} of {}", part, parts);
    guarded(folder_ / kManifestName, [&] { manifest_ = read_manifest(folder_).manifest; });
    if (!findings_.empty()) return findings_;
    covers_.resize(manifest_.tensors.size());
    for (std::size_t i = 0; i < manifest_.shards.size(); ++i) {
      const ShardRecord& shard = manifest_.shards[i];
      const bool mine = i % static_cast<std::size_t>(parts) == static_cast<std::size_t>(part);
      // Whether the boxes of all files fit together is the first part's.
      if (mine || part == 0)
        guarded(folder_ / shard.name, [&] { check_shard(shard, mine && deep_); });
    }
    if (const fs::path index = folder_ / kIndexName; part == 0 && fs::exists(index))
      guarded(
          index,
          [&] {
            check_index(File::open_to_read(index, ExitCode::checkpoint), manifest_.uuid, deep_);
          },
          /*is_needed=*/false);
    if (part == 0 && can_load(findings_)) guarded(folder_ / kManifestName, [&] { check_cover(); });
    return findings_;
  }

 private:
  template <class Check>
  void guarded(const fs::path& file, const Check& check, bool is_needed = true) {
    try {
      check();
    } catch (const Error& error) {
      findings_.push_back({file, error.what(), error.code() == ExitCode::checkpoint, is_needed});
    } catch (const std::exception& error) {
      findings_.push_back({file, error.what(), false, is_needed});
    }
  }

  void check_shard(const ShardRecord& shard, bool deep) {
    const File file = File::open_to_read(folder_ / shard.name, ExitCode::checkpoint);
    const ShardTables tables = read_tables(file, shard, manifest_.tensors);
    const auto ranges = covered_ranges(tables.boxes, shard, file.path());
    for (std::int64_t b = 0; b < tables.boxes.size(); ++b) {
      const auto tensor = static_cast<std::size_t>(tables.boxes.tensor(b));
      covers_[tensor].add(tables.boxes.box(b, manifest_.tensors[tensor].shape.size()));
    }
    if (!deep) return;
    require(header_checksum(file, shard.bytes, ranges) == shard.header_crc, ExitCode::checkpoint,
            "{} is damaged (the checksum of its header does not match)", file.path().string());
    DamagedBlocks damaged;
    for (std::int64_t b = 0; b < tables.boxes.size(); ++b) check_box(file, tables, b, damaged);
    require(
        damaged.count == 0, ExitCode::checkpoint,
        "{} is damaged (the checksum of {} does not match{})", file.path().string(), damaged.first,
        damaged.count == 1 ? "" : fmt::format(", nor those of {} more blocks", damaged.count - 1));
  }

  struct DamagedBlocks {
    std::int64_t count = 0;
    std::string first;  ///< "block 3 of model/x"
  };

  void check_box(const File& file, const ShardTables& tables, std::int64_t box,
                 DamagedBlocks& damaged) {
    const std::int64_t bytes = tables.boxes.bytes(box);
    for (std::int64_t k = 0; k < blocks_in(bytes); ++k) {
      const auto block = static_cast<std::size_t>(std::min(kBlockBytes, bytes - k * kBlockBytes));
      std::byte* data = memory_.reserve(block);
      file.read(data, block, tables.boxes.offset(box) + k * kBlockBytes);
      if (crc32c(0, data, block) ==
          tables.checksums[static_cast<std::size_t>(tables.boxes.first_block(box) + k)])
        continue;
      if (damaged.count++ == 0)
        damaged.first =
            fmt::format("block {} of {}", k,
                        manifest_.tensors[static_cast<std::size_t>(tables.boxes.tensor(box))].name);
    }
  }

  void check_cover() {
    for (std::size_t i = 0; i < covers_.size(); ++i) {
      const TensorInfo& tensor = manifest_.tensors[i];
      require(covers_[i].elements() == element_count(tensor.shape), ExitCode::checkpoint,
              "{} is damaged (its files have {} of the {} elements of {})", folder_.string(),
              covers_[i].elements(), element_count(tensor.shape), tensor.name);
      require(covers_[i].makes_up(whole(tensor.shape)), ExitCode::checkpoint,
              "{} is damaged (its files have some elements of {} twice, and lack others)",
              folder_.string(), tensor.name);
    }
  }

  fs::path folder_;
  bool deep_;
  Manifest manifest_;
  std::vector<Cover> covers_;  // what the files hold of each tensor
  AlignedMemory memory_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> verify(const fs::path& step_folder, bool deep, int part, int parts) {
  return Verification(step_folder, deep).run(part, parts);
}

bool can_load(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, &Finding::is_needed);
}

std::optional<Finding> check_hint(const fs::path& folder) {
  const std::vector<StepFolder> steps = list_steps(folder);
  const fs::path hint = folder / kHintName;
  if (steps.empty() && !fs::exists(hint)) return std::nullopt;
  const std::string newest = steps.empty() ? "" : steps.back().path.filename().string();
  try {
    if (read_text(hint, kLongestHint, ExitCode::checkpoint) == newest + "\n") return std::nullopt;
  } catch (const Error& error) {
    return Finding{hint, error.what()};
  }
  return Finding{hint, fmt::format("{} does not name the latest checkpoint, {}", hint.string(),
                                   newest.empty() ? "and there is no checkpoint" : newest)};
}

std::string describe(const std::vector<Finding>& findings, std::size_t limit) {
  std::string text;
  for (std::size_t i = 0; i < std::min(limit, findings.size()); ++i)
    text += (i == 0 ? "" : "; ") + findings[i].what;
  if (findings.size() > limit) text += fmt::format("; and {} more", findings.size() - limit);
  return text;
}

}  // namespace tessera::checkpoint
