// SPDX-License-Identifier: Apache-2.0
// Numbers for the cells (stage, microbatch) of a schedule, so that their properties are in arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/schedule/action.hpp"

namespace tessera::schedule {

/// Each cell in the lists has a number. The last number stands for every cell that is not in them.
/// Takes memory in proportion to the lists, whatever numbers of microbatches a file contains.
class Cells {
 public:
  /// `stages`: the stages of the pipeline are 0 to stages - 1.
  Cells(const ActionLists& lists, int stages);

  /// Numbers, including the last.
  std::size_t size() const { return size_; }
  std::size_t of(StageIndex stage, MicrobatchIndex microbatch) const {
    if (stage.value() < 0 || stage.value() >= stages_ || microbatch.value() < 0 ||
        microbatch.value() >= microbatches_)
      return size_ - 1;
    if (!sparse_.empty()) return found(stage, microbatch);
    return stage.position() * static_cast<std::size_t>(microbatches_) + microbatch.position();
  }

 private:
  std::size_t found(StageIndex stage, MicrobatchIndex microbatch) const;

  int stages_;
  std::int64_t microbatches_ = 0;
  std::size_t size_;
  /// The cells in ascending order, if most pairs of stage and microbatch are in no list. Such lists
  /// lack computations, so they may take longer.
  std::vector<std::uint64_t> sparse_;
};

}  // namespace tessera::schedule
