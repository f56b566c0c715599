// SPDX-License-Identifier: Apache-2.0
// Fills wanted boxes from one shard file, block by checked block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/shard_file.hpp"
#include "load/cover.hpp"
#include "tessera/checkpoint/slice_view.hpp"

namespace tessera::checkpoint {

/// A box that the caller wants.
struct Want {
  std::int64_t tensor = 0;  ///< number in the manifest
  const SliceView* view = nullptr;
  Cover filled{};  ///< the parts found so far
};

/// Copies what the shard holds of `wants` (ascending by tensor) and notes it in `filled`. Reads
/// each touched block once and compares its checksum; reads that are close together become one.
/// Error(checkpoint) names file, tensor and block.
void load_shard(const File& file, const BoxTable& boxes, std::span<const std::uint32_t> checksums,
                const std::vector<TensorInfo>& tensors, std::span<Want> wants);

}  // namespace tessera::checkpoint
