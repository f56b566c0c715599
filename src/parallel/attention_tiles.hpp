// SPDX-License-Identifier: Apache-2.0
// Which pieces of a block of scores exist at all under a mask: pure arithmetic on positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/parallel/context_attention.hpp"

namespace tessera::parallel {

/// A rectangle of scores. Rows and columns count from the first query and the first key *held*,
/// positions in the sequence.
struct AttentionTile {
  enum class Mask : std::uint8_t {
    none,      ///< every query sees every key
    diagonal,  ///< as many queries as keys, at the same positions: query i sees keys 0..i
    window,    ///< query at position p sees keys at (p - window, p], without a window at [0, p]
  };
  Range rows, columns;
  std::int64_t query_position = 0, key_position = 0;  ///< of the first of each
  Mask mask = Mask::none;
  /// What the tile shows, whatever its mask.
  kernels::Band band(std::int64_t window) const;
  bool operator==(const AttentionTile&) const = default;
};

/// Where, among the positions that are held, the runs of one document begin.
std::vector<std::int64_t> document_runs(std::span<const Range> held,
                                        std::span<const std::int64_t> documents);

/// The tiles of one sequence in which queries at the positions of `queries` see keys at those of
/// `keys` (both as a plan::SequenceCut gives them, of the same cut): causal, inside of documents
/// (their first positions, ascending, the first of them 0; empty = one document), and within
/// `window` keys if it is > 0. Each visible score is in exactly one tile, and each row of a tile
/// sees at least one of its keys. Tiles that a window cuts are kept small, so that they hide few
/// scores, unless `whole`.
std::vector<AttentionTile> attention_tiles(std::span<const Range> queries,
                                           std::span<const Range> keys,
                                           std::span<const std::int64_t> documents,
                                           std::int64_t window, bool whole = false);

}  // namespace tessera::parallel
