// SPDX-License-Identifier: Apache-2.0
// manifest.json: what a checkpoint consists of. It grows with tensors and files, never with boxes.
//
// The text is JSON whose last member is "crc32c", the checksum of every byte before it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

inline constexpr std::int64_t kBlockBytes = std::int64_t{4}
                                            << 20;  ///< one checksum for each block of a box
inline constexpr std::int64_t kFormatMajor = 1, kFormatMinor = 0;
inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kIndexName = "index.h5";

/// A table inside a shard file.
struct TableRecord {
  std::int64_t offset = 0;  ///< bytes from the beginning of the file
  std::int64_t count = 0;   ///< rows
  std::uint32_t crc = 0;
};

struct ShardRecord {
  std::string name;  ///< plain file name
  std::int64_t bytes = 0;
  /// of all bytes that belong neither to a box nor to a table, in ascending order
  std::uint32_t header_crc = 0;
  /// dimensions D of a row of the box table: int64 [tensor, offset, D offsets, D extents]
  std::int64_t box_dims = 0;
  TableRecord boxes;
  TableRecord checksums;  ///< uint32, one for each block of each box
  /// numbers of the tensors that the file may hold parts of: a few runs, ascending
  std::vector<Range> tensors;

  std::int64_t box_row_bytes() const { return 8 * (2 + 2 * box_dims); }
  bool may_hold(std::int64_t tensor) const;
};

struct Manifest {
  std::string uuid;
  std::int64_t step = 0;
  std::string mesh;
  std::string written;  ///< UTC, "2026-01-31T12:00:00Z"
  std::string writer;   ///< "tessera 0.1.0"
  std::string config_toml;
  std::string extra;  ///< a JSON object
  std::vector<TensorInfo> tensors;
  std::vector<ShardRecord> shards;
};

/// One without files, written now by this program.
Manifest new_manifest(std::string uuid, std::int64_t step, std::string mesh,
                      std::string config_toml, std::string extra, std::vector<TensorInfo> tensors);

std::string to_text(const Manifest& manifest);
/// Checks everything that can be checked without the other files. `path` is for messages.
/// Error(checkpoint).
Manifest parse_manifest(std::string_view text, const std::filesystem::path& path);

/// One shard's record as text, for messages between ranks, and a JSON list of them back. `path` is
/// for messages.
std::string to_text(const ShardRecord& shard);
std::vector<ShardRecord> parse_shards(std::string_view list, std::int64_t tensors,
                                      const std::filesystem::path& path);

/// At most 16 runs that cover the ascending `numbers`; the smallest gaps are filled first.
std::vector<Range> few_runs(const std::vector<std::int64_t>& numbers);

}  // namespace tessera::checkpoint
