// SPDX-License-Identifier: Apache-2.0
#include "partial_sums.hpp"

#include <algorithm>

namespace tessera::parallel {

PartialSums::Place PartialSums::of(std::int64_t microbatch) {
  const bool same =
      !partials_.empty() && partials_.back().level == 0 && partials_.back().index == microbatch;
  const bool first = partials_.empty() || (tree_ && !same);
  if (first) {
    merge();
    partials_.push_back({0, microbatch, allocate_()});
  }
  return {partials_.back().flat, first};
}

at::Tensor PartialSums::take() {
  merge();
  if (partials_.empty()) return allocate_().zero_();
  std::ranges::sort(partials_, {}, &Partial::first);
  for (; partials_.size() > 1; partials_.pop_back())
    partials_[partials_.size() - 2].flat.add_(partials_.back().flat);
  const at::Tensor sum = partials_.back().flat;
  partials_.clear();
  return sum;
}

/// Adds neighbours of equal size; if microbatches come in order, what is left is one partial sum
/// for each set bit of their number.
void PartialSums::merge() {
  while (merge_last()) continue;
}

/// The newest partial sum with its neighbour in the tree, if that is there.
bool PartialSums::merge_last() {
  if (partials_.empty()) return false;
  const Partial newest = partials_.back();
  const auto neighbour = std::ranges::find_if(partials_, [&](const Partial& other) {
    return other.level == newest.level && other.index == (newest.index ^ 1);
  });
  if (neighbour == partials_.end()) return false;
  neighbour->flat.add_(newest.flat);  // in either order: addition commutes
  const Partial sum{newest.level + 1, newest.index / 2, neighbour->flat};
  partials_.pop_back();
  partials_.erase(neighbour);
  partials_.push_back(sum);
  return true;
}

}  // namespace tessera::parallel
