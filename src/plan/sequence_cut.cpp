// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/sequence_cut.hpp"

#include "tessera/base/error.hpp"

namespace tessera::plan {

SequenceCut SequenceCut::make(std::int64_t seq, int ranks, bool balanced) {
  TESSERA_EXPECT(seq > 0 && ranks > 0, "{} positions on {} ranks", seq, ranks);
  const std::int64_t chunks = ranks == 1 ? 1 : balanced ? 2 * ranks : ranks;
  TESSERA_EXPECT(seq % chunks == 0, "{} positions in {} chunks", seq, chunks);
  SequenceCut cut;
  cut.seq_ = seq;
  cut.ranks_ = ranks;
  cut.balanced_ = balanced;
  return cut;
}

std::vector<Range> SequenceCut::ranges(int rank) const {
  TESSERA_EXPECT(rank >= 0 && rank < ranks_, "rank {} of {}", rank, ranks_);
  if (!balanced_ || ranks_ == 1) return {{rank * positions(), positions()}};
  const std::int64_t chunk = seq_ / (2 * ranks_), mirror = 2 * ranks_ - 1 - rank;
  if (mirror == rank + 1) return {{rank * chunk, 2 * chunk}};
  return {{rank * chunk, chunk}, {mirror * chunk, chunk}};
}

}  // namespace tessera::plan
