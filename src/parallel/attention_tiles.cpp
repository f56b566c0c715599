// SPDX-License-Identifier: Apache-2.0
#include "attention_tiles.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::parallel {
namespace {

/// A run of positions of one document, and where it is among those that are held.
struct Piece {
  Range positions;
  std::int64_t held_at = 0;
  std::int64_t document = 0;
};

std::vector<Piece> pieces_of(std::span<const Range> ranges,
                             std::span<const std::int64_t> documents) {
  std::vector<Piece> pieces;
  std::int64_t held = 0;
  for (const Range& range : ranges) {
    for (std::int64_t begin = range.begin; begin < range.end();) {
      const auto next = std::ranges::upper_bound(documents, begin);
      const std::int64_t end = next == documents.end() ? range.end() : std::min(range.end(), *next);
      pieces.push_back({{begin, end - begin}, held, next - documents.begin()});
      held += end - begin;
      begin = end;
    }
  }
  return pieces;
}

using Mask = AttentionTile::Mask;

/// fewer rows at a time cost more in calls than they save in hidden scores
constexpr std::int64_t kWindowRows = 256;

/// Rows at positions [begin, end) of `q`, with the keys of `k` that causality and `reach` leave
/// them.
AttentionTile tile_of(const Piece& q, const Piece& k, std::int64_t begin, std::int64_t end,
                      std::int64_t reach) {
  const std::int64_t first = std::max(k.positions.begin, begin - reach + 1),
                     last = std::min(k.positions.end(), end);
  AttentionTile tile{{q.held_at + begin - q.positions.begin, end - begin},
                     {k.held_at + first - k.positions.begin, last - first},
                     begin,
                     first,
                     Mask::window};
  if (end - reach > first) return tile;  // the last query does not see the first key any more
  if (last <= begin + 1) tile.mask = Mask::none;
  if (last > begin + 1 && begin == first && end == last) tile.mask = Mask::diagonal;
  return tile;
}

void add_tiles(std::vector<AttentionTile>& tiles, const Piece& q, const Piece& k,
               std::int64_t window, bool in_rows) {
  const std::int64_t reach = window > 0 ? window : q.positions.end();  // nobody looks back further
  const std::int64_t begin = std::max(q.positions.begin, k.positions.begin);
  const std::int64_t end = std::min(q.positions.end(), k.positions.end() - 1 + reach);
  if (begin >= end) return;
  const bool cut = in_rows && tile_of(q, k, begin, end, reach).mask == Mask::window;
  const std::int64_t step = cut ? std::max(reach, kWindowRows) : end - begin;
  for (std::int64_t row = begin; row < end; row += step)
    tiles.push_back(tile_of(q, k, row, std::min(end, row + step), reach));
}

}  // namespace

kernels::Band AttentionTile::band(std::int64_t window) const {
  if (mask == Mask::none) return {};
  const std::int64_t ahead = query_position + rows.size - key_position - columns.size;
  return {window > 0 ? window - 1 - ahead : -1, ahead};
}

std::vector<std::int64_t> document_runs(std::span<const Range> held,
                                        std::span<const std::int64_t> documents) {
  std::vector<std::int64_t> begins;
  for (const Piece& piece : pieces_of(held, documents)) begins.push_back(piece.held_at);
  return begins;
}

std::vector<AttentionTile> attention_tiles(std::span<const Range> queries,
                                           std::span<const Range> keys,
                                           std::span<const std::int64_t> documents,
                                           std::int64_t window, bool whole) {
  TESSERA_EXPECT(documents.empty() || documents.front() == 0, "the first document begins at {}",
                 documents.front());
  const std::vector<Piece> rows = pieces_of(queries, documents),
                           columns = pieces_of(keys, documents);
  TESSERA_EXPECT(std::ranges::is_sorted(columns, {}, &Piece::document), "keys are not in order");
  std::vector<AttentionTile> tiles;
  for (const Piece& q : rows)
    for (const Piece& k : std::ranges::equal_range(columns, q.document, {}, &Piece::document))
      add_tiles(tiles, q, k, window, !whole);
  return tiles;
}

}  // namespace tessera::parallel
