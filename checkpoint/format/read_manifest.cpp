// SPDX-License-Identifier: Apache-2.0
#include "format/read_manifest.hpp"

#include <fmt/ranges.h>

#include "format/step_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {

namespace {

constexpr std::int64_t kLimitBytes = std::int64_t{1} << 30;

/// Error(checkpoint) that says which steps are there. What cannot be looked at may be there.
void require_there(const std::filesystem::path& step_folder) {
  std::error_code ignored;
  const auto type = std::filesystem::status(step_folder, ignored).type();
  if (type != std::filesystem::file_type::not_found) return;
  const std::filesystem::path folder = step_folder.parent_path();
  std::vector<std::int64_t> steps;
  for (const StepFolder& there : list_steps(folder)) steps.push_back(there.step);
  fail(ExitCode::checkpoint, "there is no checkpoint {}; steps that are there: {}",
       step_folder.string(), steps.empty() ? "none" : fmt::format("{}", fmt::join(steps, ", ")));
}

}  // namespace

ReadManifest read_manifest(const std::filesystem::path& step_folder) {
  require_there(step_folder);
  const std::filesystem::path path = step_folder / kManifestName;
  ReadManifest read{read_text(path, kLimitBytes, ExitCode::checkpoint), {}};
  read.manifest = parse_manifest(read.text, path);
  const std::int64_t step = step_of_folder(step_folder);
  require(step < 0 || step == read.manifest.step, ExitCode::checkpoint,
          "{} is damaged (it is of step {})", path.string(), read.manifest.step);
  return read;
}

ReadManifest read_complete_manifest(const std::filesystem::path& step_folder) {
  ReadManifest read = read_manifest(step_folder);
  for (const ShardRecord& shard : read.manifest.shards) {
    const std::filesystem::path path = step_folder / shard.name;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    if (error) fail_errno(ExitCode::checkpoint, "cannot find", path, error.value());
    require(static_cast<std::int64_t>(bytes) == shard.bytes, ExitCode::checkpoint,
            "{} is damaged (it has {} bytes, {} were written)", path.string(), bytes, shard.bytes);
  }
  return read;
}

Summary summarize(const std::filesystem::path& step_folder) {
  Manifest manifest = read_complete_manifest(step_folder).manifest;
  Summary summary{manifest.step,
                  manifest.uuid,
                  manifest.mesh,
                  manifest.written,
                  manifest.writer,
                  manifest.config_toml,
                  manifest.extra,
                  std::move(manifest.tensors),
                  0,
                  static_cast<std::int64_t>(manifest.shards.size()),
                  0};
  for (const ShardRecord& shard : manifest.shards) {
    summary.boxes += shard.boxes.count;
    summary.file_bytes += shard.bytes;
  }
  return summary;
}

}  // namespace tessera::checkpoint
