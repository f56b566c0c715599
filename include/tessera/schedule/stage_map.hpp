// SPDX-License-Identifier: Apache-2.0
// Which rank of a pipeline holds which stages.
#pragma once

#include <string>
#include <vector>

namespace tessera::schedule {

class StageMap {
 public:
  /// Stage s on rank s % ranks: down the ranks again and again.
  static StageMap loop(int ranks, int stages_per_rank = 1);
  /// Down the ranks and up again (https://arxiv.org/abs/2405.15362): with two stages a rank, the
  /// first and the last stage are on rank 0.
  static StageMap v(int ranks, int stages_per_rank = 2);
  /// Stage s on rank `ranks[s]`. Throws Error(usage) for a negative rank, or one without a stage
  /// below the largest.
  static StageMap of(std::vector<int> ranks);
  /// "loop", "v", or the ranks of the stages with commas between ("0,1,1,0"), for `stages` stages
  /// on `ranks` ranks. Throws Error(usage) when they do not fit each other; `key` is what the user
  /// wrote it for.
  static StageMap parse(const std::string& text, int stages, int ranks, const char* key);

  int stages() const { return static_cast<int>(ranks_.size()); }
  int ranks() const { return static_cast<int>(stages_.size()); }
  int rank_of(int stage) const { return ranks_[static_cast<std::size_t>(stage)]; }
  /// In the order of the model.
  const std::vector<int>& stages_of(int rank) const {
    return stages_[static_cast<std::size_t>(rank)];
  }
  /// Is what flows from `stage` to `next` handed over on one rank?
  bool same_rank(int stage, int next) const { return rank_of(stage) == rank_of(next); }
  bool operator==(const StageMap&) const = default;

 private:
  std::vector<int> ranks_;
  std::vector<std::vector<int>> stages_;
};

}  // namespace tessera::schedule
