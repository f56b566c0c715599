// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/stream.hpp"

#include <algorithm>

#include "format/aligned_memory.hpp"
#include "format/index_file.hpp"
#include "format/step_folder.hpp"
#include "format/tensor_table.hpp"
#include "save/shard_writer.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/shard.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBoxBytes = 16 * kBlockBytes;

class Streaming {
 public:
  Streaming(const StreamOptions& options, StreamContents contents, const ReadBox& read)
      : options_(options), read_(read), final_(options.folder / step_name(contents.step)) {
    require(options.files >= 1, ExitCode::usage, "a checkpoint has at least one file, not {}",
            options.files);
    require(!fs::exists(final_), ExitCode::usage, "{} exists; choose another folder",
            final_.string());
    manifest_ = new_manifest(make_uuid(), contents.step, std::move(contents.mesh),
                             std::move(contents.config_toml), std::move(contents.json_extra),
                             std::move(contents.tensors));
    std::sort(
        manifest_.tensors.begin(), manifest_.tensors.end(),
        [](const TensorInfo& a, const TensorInfo& b) { return NaturalOrder()(a.name, b.name); });
  }

  fs::path run() {
    make_folders(options_.folder, ExitCode::checkpoint);
    remove_dead_attempts(options_.folder, options_.stale_partial_seconds);
    const fs::path partial = partial_path(options_.folder, manifest_.step, manifest_.uuid);
    try {
      make_folder(partial, ExitCode::checkpoint);
      for (int file = 0; file < options_.files; ++file) write_file(partial, file);
      write_text(partial / kManifestName, to_text(manifest_), ExitCode::checkpoint);
      sync_folder(partial, ExitCode::checkpoint);
      rename_path(partial, final_, ExitCode::checkpoint);
    } catch (...) {
      remove_quietly(partial);
      throw;
    }
    sync_folder(options_.folder, ExitCode::checkpoint);
    if (options_.write_index)
      warn_if_it_fails([&] { write_index(options_.folder, final_, manifest_); });
    warn_if_it_fails([&] { write_hint(options_.folder); });
    return final_;
  }

 private:
  void write_file(const fs::path& partial, int file) {
    std::vector<PlannedBox> boxes;
    for (std::size_t number = 0; number < manifest_.tensors.size(); ++number)
      add_boxes(static_cast<std::int64_t>(number), file, boxes);
    if (boxes.empty()) return;
    const std::string name = fmt::format("{}of{}", file, options_.files);
    ShardWriter writer(partial / fmt::format("shard-{}.h5", name), {name}, std::move(boxes),
                       manifest_.tensors);
    const std::vector<std::uint32_t> checksums =
        writer.write_boxes(0, [this](const PlannedBox& planned) { return fetch(planned); });
    manifest_.shards.push_back(writer.finish({&checksums, 1}));
  }

  /// A chunk of the tensor along its first dimension above 1, in boxes of bounded size. The
  /// tensor's `number` says which file begins, so that those with fewer rows than files spread.
  void add_boxes(std::int64_t number, int file, std::vector<PlannedBox>& boxes) const {
    const TensorInfo& tensor = manifest_.tensors[static_cast<std::size_t>(number)];
    const auto at = std::find_if(tensor.shape.begin(), tensor.shape.end(),
                                 [](std::int64_t n) { return n > 1; });
    const std::int64_t rows = at == tensor.shape.end() ? 1 : *at,
                       parts = std::min<std::int64_t>(rows, options_.files);
    const std::int64_t part = (file + number) % options_.files,
                       bytes = *checked_bytes(tensor.shape, tensor.dtype);
    if (bytes == 0 || part >= parts) return;
    const Range range = chunk_of(rows, parts, part);
    const std::int64_t most = std::max<std::int64_t>(1, kMostBoxBytes / (bytes / rows));
    for (std::int64_t row = range.begin; row < range.end(); row += most) {
      PlannedBox planned{number, whole(tensor.shape), 0};
      const std::int64_t count = std::min(most, range.end() - row);
      planned.bytes = bytes / rows * count;
      if (at != tensor.shape.end()) {
        const auto dim = static_cast<std::size_t>(at - tensor.shape.begin());
        planned.box.offset[dim] = row, planned.box.extent[dim] = count;
      }
      boxes.push_back(std::move(planned));
    }
  }

  const std::byte* fetch(const PlannedBox& planned) {
    std::byte* values = values_.reserve(static_cast<std::size_t>(planned.bytes));
    const TensorInfo& tensor = manifest_.tensors[static_cast<std::size_t>(planned.tensor)];
    read_({tensor.name, tensor.dtype, tensor.shape, planned.box.offset, planned.box.extent},
          values);
    return values;
  }

  const StreamOptions& options_;
  const ReadBox& read_;
  fs::path final_;
  Manifest manifest_;
  AlignedMemory values_;
};

}  // namespace

fs::path write_streamed(const StreamOptions& options, StreamContents contents,
                        const ReadBox& read) {
  return Streaming(options, std::move(contents), read).run();
}

}  // namespace tessera::checkpoint
