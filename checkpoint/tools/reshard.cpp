// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/reshard.hpp"

#include "format/read_manifest.hpp"
#include "load/checkpoint_reader.hpp"
#include "tessera/checkpoint/stream.hpp"

namespace tessera::checkpoint {

std::filesystem::path reshard(const std::filesystem::path& step_folder,
                              const ReshardOptions& options) {
  Manifest manifest = read_complete_manifest(step_folder).manifest;
  const CheckpointReader source(std::make_shared<CheckpointReader::Impl>(step_folder, manifest));
  StreamContents contents{manifest.step, std::move(manifest.mesh), std::move(manifest.config_toml),
                          std::move(manifest.extra), std::move(manifest.tensors)};
  return write_streamed({options.folder, options.files, options.write_index}, std::move(contents),
                        [&](const TensorSlice& box, void* values) { source.read(box, values); });
}

}  // namespace tessera::checkpoint
