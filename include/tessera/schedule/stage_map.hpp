// SPDX-License-Identifier: Apache-2.0
// Which rank of a pipeline holds which stages.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/indexed_vector.hpp"
#include "tessera/schedule/indexes.hpp"

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
  static StageMap of(const std::vector<int>& ranks);
  /// "loop", "v", or the ranks of the stages with commas between ("0,1,1,0"), for `stages` stages
  /// on `ranks` ranks. Throws Error(usage) when they do not fit each other; `key` is what the user
  /// wrote it for.
  static StageMap parse(const std::string& text, int stages, int ranks, const char* key);

  int stages() const { return ranks_.size(); }
  int ranks() const { return stages_.size(); }
  IndexRange<StageIndex> each_stage() const { return ranks_.indexes(); }
  IndexRange<PipelineRank> each_rank() const { return stages_.indexes(); }
  /// Is there such a stage?
  bool has(StageIndex stage) const { return 0 <= stage.value() && stage.value() < stages(); }
  static StageIndex first() { return StageIndex(0); }
  StageIndex last() const { return StageIndex(stages() - 1); }
  PipelineRank rank_of(StageIndex stage) const { return ranks_[stage]; }
  /// In the order of the model.
  const std::vector<StageIndex>& stages_of(PipelineRank rank) const { return stages_[rank]; }
  /// Is what flows from `stage` to `next` handed over on one rank?
  bool same_rank(StageIndex stage, StageIndex next) const {
    return rank_of(stage) == rank_of(next);
  }
  bool operator==(const StageMap&) const = default;

 private:
  IndexedVector<StageIndex, PipelineRank> ranks_;
  IndexedVector<PipelineRank, std::vector<StageIndex>> stages_;
};

}  // namespace tessera::schedule
