// SPDX-License-Identifier: Apache-2.0
// How a dimension is cut over n ranks: the one rule that sharding, data, checkpoints and plans
// follow.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera {

/// Rows [begin, begin + size) of a dimension.
struct Range {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  std::int64_t end() const { return begin + size; }
  bool operator==(const Range&) const = default;
};

/// Rows per rank when `rows` are cut over `ranks`: all but the last non-empty chunk have this many
/// (torch.chunk's rule).
inline std::int64_t chunk_size(std::int64_t rows, std::int64_t ranks) {
  return (rows + ranks - 1) / ranks;
}

/// Chunks that are not empty when `rows` are cut over `ranks`; 0 of no rows.
inline std::int64_t filled_chunks(std::int64_t rows, std::int64_t ranks) {
  return chunk_size(rows, std::max<std::int64_t>(1, chunk_size(rows, ranks)));
}

/// The chunk of rank `rank`; the last ones may be short or empty.
inline Range chunk_of(std::int64_t rows, std::int64_t ranks, std::int64_t rank) {
  const std::int64_t chunk = chunk_size(rows, ranks);
  const std::int64_t begin = std::min(rows, rank * chunk);
  return {begin, std::min(rows, begin + chunk) - begin};
}

}  // namespace tessera
