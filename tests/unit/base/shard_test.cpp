// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/shard.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Shard, ChunksTileTheRows) {
  for (std::int64_t rows = 0; rows <= 20; ++rows) {
    for (std::int64_t ranks = 1; ranks <= 9; ++ranks) {
      std::int64_t next = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const Range chunk = chunk_of(rows, ranks, rank);
        EXPECT_EQ(chunk.begin, std::min(next, rows));
        EXPECT_LE(chunk.size, chunk_size(rows, ranks));
        next = chunk.end();
      }
      EXPECT_EQ(next, rows);
    }
  }
}

}  // namespace
}  // namespace tessera
