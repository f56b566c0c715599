// SPDX-License-Identifier: Apache-2.0
// From a checkpoint to another format, box by box, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tessera/checkpoint/checkpoint.hpp"
#include "tessera/checkpoint/safetensors.hpp"

namespace tessera::checkpoint {

/// Where row r (dimension 0) of the source goes in the target; a permutation of the rows.
using RowMap = std::function<std::int64_t(std::int64_t)>;

struct ExportTensor {
  std::string source;        ///< name in the checkpoint, "model/<fqn>"
  std::string target;        ///< name in the file
  DType dtype = DType::f32;  ///< type in the file
  RowMap row_map;            ///< empty: rows stay where they are
};

/// Reads a whole tensor as `dtype` in chunks of rows of at most about `chunk_bytes` (at least one
/// row) and hands each to `take(first_row, rows, data)`. A scalar is one row.
void for_each_row_chunk(const Opened& checkpoint, std::string_view name, DType dtype,
                        std::size_t chunk_bytes,
                        const std::function<void(std::int64_t, std::int64_t, const void*)>& take);

/// Streams the tensors into `writer`, which was made with the targets' names, dtypes and the
/// sources' shapes
/// (`export_entries` gives them). The caller calls writer.finish().
void export_tensors(const Opened& checkpoint, std::span<const ExportTensor> tensors,
                    SafetensorsWriter& writer);

/// The writer's table for `tensors`. Error(checkpoint) names a source that the checkpoint does not
/// have.
std::vector<SafetensorsEntry> export_entries(const Opened& checkpoint,
                                             std::span<const ExportTensor> tensors);

}  // namespace tessera::checkpoint
