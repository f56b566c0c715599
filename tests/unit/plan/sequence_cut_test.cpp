// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/sequence_cut.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::plan {
namespace {

using testing::ElementsAre;

TEST(SequenceCut, HeadAndTailChunksBalance) {
  const SequenceCut cut = SequenceCut::make(24, 3, true);
  EXPECT_EQ(cut.positions(), 8);
  EXPECT_THAT(cut.ranges(0), ElementsAre(Range{0, 4}, Range{20, 4}));
  EXPECT_THAT(cut.ranges(1), ElementsAre(Range{4, 4}, Range{16, 4}));
  EXPECT_THAT(cut.ranges(2), ElementsAre(Range{8, 8}));  // two chunks that lie beside each other
}

TEST(SequenceCut, InOrder) {
  const SequenceCut cut = SequenceCut::make(12, 3, false);
  EXPECT_THAT(cut.ranges(1), ElementsAre(Range{4, 4}));
  EXPECT_THAT(SequenceCut::make(7, 1, true).ranges(0), ElementsAre(Range{0, 7}));
}

TEST(SequenceCut, EveryPositionOnceAndTheSameWorkForAll) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const std::int64_t seq = 48;
    const SequenceCut cut = SequenceCut::make(seq, ranks, true);
    std::vector<int> seen(seq, 0);
    std::vector<std::int64_t> visible;  // keys under a causal mask
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t count = 0, held = 0;
      for (const Range& range : cut.ranges(rank))
        for (std::int64_t p = range.begin; p < range.end(); ++p, ++held) {
          ++seen[static_cast<std::size_t>(p)];
          count += p + 1;
        }
      EXPECT_EQ(held, cut.positions());
      visible.push_back(count);
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_THAT(visible, testing::Each(visible[0])) << ranks;
  }
}

TEST(SequenceCut, UnbalancedChunksMayBeFewer) {
  EXPECT_EQ(SequenceCut::make(20, 4, false).positions(), 5);
}

}  // namespace
}  // namespace tessera::plan
