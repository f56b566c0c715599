// SPDX-License-Identifier: Apache-2.0
// Which positions of every sequence a context-parallel rank holds.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/base/shard.hpp"

namespace tessera::plan {

/// A value: rank arithmetic, no communication. The default is a sequence that nobody shares.
class SequenceCut {
 public:
  SequenceCut() = default;
  /// `balanced`: 2 x ranks chunks, of which rank r has numbers r and 2 ranks - 1 - r, so that a
  /// causal mask leaves every rank the same work (zig-zag; "headtail" in TorchTitan; Brandon et
  /// al., https://arxiv.org/abs/2311.09431, have the problem). Otherwise `ranks` chunks in order.
  /// Contract: the chunks are equal.
  static SequenceCut make(std::int64_t seq, int ranks, bool balanced);

  std::int64_t seq() const { return seq_; }
  int ranks() const { return ranks_; }
  /// As it was made, on one rank too.
  bool balanced() const { return balanced_; }
  /// Positions of a sequence on each rank.
  std::int64_t positions() const { return seq_ / ranks_; }
  /// The positions that `rank` holds, ascending and not empty; neighbouring chunks are one range.
  std::vector<Range> ranges(int rank) const;
  bool operator==(const SequenceCut&) const = default;

 private:
  std::int64_t seq_ = 1;
  int ranks_ = 1;
  bool balanced_ = false;
};

}  // namespace tessera::plan
