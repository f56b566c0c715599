// SPDX-License-Identifier: Apache-2.0
// A checkpoint written by one process, a box at a time, in bounded memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

struct StreamOptions {
  /// a checkpoint folder, as SaveOptions::folder: the step folder is made in it
  std::filesystem::path folder;
  int files = 1;  ///< shard files; each tensor is cut over them along its first dimension above 1
  bool write_index = true;
  double stale_partial_seconds = 3600;  ///< as SaveOptions
};

/// What a checkpoint says, but for the values.
struct StreamContents {
  std::int64_t step = 0;
  std::string mesh, config_toml;
  std::string json_extra = "{}";
  std::vector<TensorInfo> tensors;
};

/// Writes the values of a box, whose type is the tensor's, to memory.
using ReadBox = std::function<void(const TensorSlice&, void*)>;

/// Writes a checkpoint and commits it by a rename as save() does. `read` is asked for boxes of at
/// most 64 MiB, or of one row along the first dimension above 1 where that is more, file by file;
/// only one is held. Gives the new step folder. Error(usage) when that exists; whatever `read`
/// throws comes through, and nothing is left then.
std::filesystem::path write_streamed(const StreamOptions& options, StreamContents contents,
                                     const ReadBox& read);

}  // namespace tessera::checkpoint
