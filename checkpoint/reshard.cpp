#include "tessera/checkpoint/reshard.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "file_io.hpp"
#include "index_file.hpp"
#include "opened.hpp"
#include "read_manifest.hpp"
#include "shard_writer.hpp"
#include "step_folder.hpp"
#include "tessera/base/error.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

/// What file `file` of `files` gets of a tensor: a chunk along its first dimension above 1. The tensor's `number` says
/// which file begins, so that those with fewer rows than files spread.
std::optional<Box> part_of(const Shape& shape, std::int64_t number, int file, int files) {
  const auto at = std::find_if(shape.begin(), shape.end(), [](std::int64_t n) { return n > 1; });
  const std::int64_t rows = at == shape.end() ? 1 : *at, parts = std::min<std::int64_t>(rows, files);
  const std::int64_t part = (file + number) % files;
  if (element_count(shape) == 0 || part >= parts) return std::nullopt;
  const Range range = chunk_of(rows, parts, part);
  if (range.size == 0) return std::nullopt;
  Box box = whole(shape);
  if (at != shape.end()) {
    const auto dim = static_cast<std::size_t>(at - shape.begin());
    box.offset[dim] = range.begin, box.extent[dim] = range.size;
  }
  return box;
}

class Resharding {
 public:
  Resharding(const fs::path& step_folder, const ReshardOptions& options)
      : options_(options),
        manifest_(read_complete_manifest(step_folder).manifest),
        source_(std::make_shared<Opened::Impl>(step_folder, manifest_)),
        final_(options.folder / step_name(manifest_.step)) {
    require(options.files >= 1, ExitCode::usage, "a checkpoint has at least one file, not {}", options.files);
    require(!fs::exists(final_), ExitCode::usage, "{} exists; choose another folder", final_.string());
    manifest_.uuid = make_uuid();
    manifest_.writer = "tessera " TESSERA_VERSION;
    manifest_.shards.clear();
  }

  fs::path run() {
    make_folders(options_.folder, ExitCode::checkpoint);
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
    if (options_.write_index) write_index(options_.folder, final_, manifest_);
    write_hint(options_.folder, list_steps(options_.folder).back().path.filename().string(), manifest_.uuid);
    return final_;
  }

 private:
  void write_file(const fs::path& partial, int file) {
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<Piece> pieces;
    for (std::size_t number = 0; number < manifest_.tensors.size(); ++number) {
      const TensorInfo& tensor = manifest_.tensors[number];
      const auto box = part_of(tensor.shape, static_cast<std::int64_t>(number), file, options_.files);
      if (!box) continue;
      parts.push_back(read(tensor, *box));
      const Part& part = *parts.back();
      pieces.push_back({&part.slice, part.bytes.data(), *box, static_cast<std::int64_t>(part.bytes.size())});
    }
    if (pieces.empty()) return;
    const std::string name = fmt::format("{}of{}", file, options_.files);
    manifest_.shards.push_back(
        write_shard(partial / fmt::format("shard-{}.h5", name), name, std::move(pieces), manifest_.tensors));
  }

  struct Part {
    TensorSlice slice;
    std::vector<std::byte> bytes;
  };
  std::unique_ptr<Part> read(const TensorInfo& tensor, const Box& box) const {
    auto part = std::make_unique<Part>(Part{{tensor.name, tensor.dtype, tensor.shape, box.offset, box.extent}, {}});
    part->bytes.resize(static_cast<std::size_t>(element_count(box.extent)) * size_of(tensor.dtype));
    source_.read(part->slice, part->bytes.data());
    return part;
  }

  const ReshardOptions& options_;
  Manifest manifest_;  // of the new one
  Opened source_;
  fs::path final_;
};

}  // namespace

fs::path reshard(const fs::path& step_folder, const ReshardOptions& options) {
  return Resharding(step_folder, options).run();
}

}  // namespace tessera::checkpoint
