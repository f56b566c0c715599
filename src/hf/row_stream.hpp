// SPDX-License-Identifier: Apache-2.0
// Whole tensors of a checkpoint into a file, in chunks of rows: bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tessera/checkpoint/weight_source.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::hf {

/// Where row r (dimension 0) of the source goes in the target; a permutation of the rows.
using RowMap = std::function<std::int64_t(std::int64_t)>;

struct StreamedTensor {
  std::string source;        ///< name in the checkpoint, "model/<fqn>"
  std::string target;        ///< name in the file
  DType dtype = DType::f32;  ///< type in the file
  RowMap row_map;            ///< empty: rows stay where they are
};

/// The tensor of that name. Throws Error(checkpoint) when the checkpoint lacks it.
const TensorInfo& find_source(const checkpoint::WeightSource& source, std::string_view name);

/// Reads a whole tensor as `dtype` in chunks of rows of at most about `chunk_bytes` (at least one
/// row) and hands each to `take(first_row, rows, data)`. A scalar is one row.
void for_each_row_chunk(const checkpoint::WeightSource& source, std::string_view name, DType dtype,
                        std::size_t chunk_bytes,
                        const std::function<void(std::int64_t, std::int64_t, const void*)>& take);

/// Streams the tensor into `writer`, which was made with the target's name and type and the
/// source's shape. The caller calls writer.finish().
void stream(const checkpoint::WeightSource& source, const StreamedTensor& tensor,
            SafetensorsWriter& writer);

}  // namespace tessera::hf
