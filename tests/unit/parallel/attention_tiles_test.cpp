// SPDX-License-Identifier: Apache-2.0
// Tiles against the mask itself, score by score.
#include "attention_tiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::parallel {
namespace {

using Mask = AttentionTile::Mask;

std::int64_t document_of(std::int64_t position, const std::vector<std::int64_t>& documents) {
  return std::ranges::upper_bound(documents, position) - documents.begin();
}

bool tile_shows(const AttentionTile& tile, std::int64_t row, std::int64_t column,
                std::int64_t window) {
  if (tile.mask == Mask::none) return true;
  if (tile.mask == Mask::diagonal) return column <= row;
  const std::int64_t back = tile.query_position + row - tile.key_position - column;
  return back >= 0 && (window == 0 || back < window);
}

std::vector<std::int64_t> positions_of(const std::vector<Range>& ranges) {
  std::vector<std::int64_t> positions;
  for (const Range& range : ranges)
    for (std::int64_t p = range.begin; p < range.end(); ++p) positions.push_back(p);
  return positions;
}

void expect_covers(const plan::SequenceCut& cut, int me, int owner,
                   const std::vector<std::int64_t>& documents, std::int64_t window) {
  const auto queries = positions_of(cut.ranges(me)), keys = positions_of(cut.ranges(owner));
  std::vector<int> shown(queries.size() * keys.size(), 0);
  for (const AttentionTile& tile :
       attention_tiles(cut.ranges(me), cut.ranges(owner), documents, window)) {
    EXPECT_EQ(queries[static_cast<std::size_t>(tile.rows.begin)], tile.query_position);
    EXPECT_EQ(keys[static_cast<std::size_t>(tile.columns.begin)], tile.key_position);
    if (tile.mask == Mask::diagonal) {
      EXPECT_EQ(tile.rows.size, tile.columns.size);
    }
    for (std::int64_t row = 0; row < tile.rows.size; ++row) {
      int visible = 0;
      for (std::int64_t column = 0; column < tile.columns.size; ++column)
        if (tile_shows(tile, row, column, window)) {
          ++visible;
          ++shown[static_cast<std::size_t>(tile.rows.begin + row) * keys.size() +
                  static_cast<std::size_t>(tile.columns.begin + column)];
        }
      EXPECT_GT(visible, 0) << "row " << row << " sees nothing";
    }
  }
  for (std::size_t i = 0; i < queries.size(); ++i)
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const std::int64_t q = queries[i], k = keys[j];
      const bool visible =
          k <= q && (window == 0 || q - k < window) &&
          (documents.empty() || document_of(q, documents) == document_of(k, documents));
      EXPECT_EQ(shown[i * keys.size() + j], visible)
          << "query " << q << ", key " << k << ", window " << window;
    }
}

TEST(AttentionTiles, CoverTheMaskOnce) {
  const std::vector<std::vector<std::int64_t>> documents{
      {}, {0, 5, 6, 21}, {0, 8, 16, 24}, {0, 1, 2, 3, 31}};
  for (const int ranks : {1, 2, 4})
    for (const bool balanced : {false, true})
      for (const std::int64_t window : {0, 1, 3, 7, 32, 100})
        for (const auto& starts : documents)
          for (int me = 0; me < ranks; ++me)
            for (int owner = 0; owner < ranks; ++owner)
              expect_covers(plan::SequenceCut::make(32, ranks, balanced), me, owner, starts,
                            window);
}

TEST(AttentionTiles, WindowsOfLongSequencesAreCutIntoRows) {
  const plan::SequenceCut cut = plan::SequenceCut::make(2048, 2, false);
  expect_covers(cut, 1, 0, {}, 300);
  expect_covers(cut, 1, 1, {}, 300);
  std::int64_t scores = 0;
  for (const AttentionTile& tile : attention_tiles(cut.ranges(1), cut.ranges(1), {}, 300))
    scores += tile.rows.size * tile.columns.size;
  EXPECT_LT(scores, 1024 * 1024 * 2 / 3);
}

TEST(AttentionTiles, WithoutWindowEveryTileSuitsAFlashKernel) {
  const plan::SequenceCut cut = plan::SequenceCut::make(32, 2, true);
  const std::vector<std::int64_t> documents{0, 5, 6, 21};
  for (const int owner : {0, 1})
    for (const AttentionTile& tile :
         attention_tiles(cut.ranges(0), cut.ranges(owner), documents, 0))
      EXPECT_NE(tile.mask, Mask::window);
  EXPECT_TRUE(attention_tiles(plan::SequenceCut::make(32, 2, false).ranges(0),
                              plan::SequenceCut::make(32, 2, false).ranges(1), {}, 0)
                  .empty());
}

}  // namespace
}  // namespace tessera::parallel
