// SPDX-License-Identifier: Apache-2.0
// Gradients of microbatches that wait for their reduction, as partial sums.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace tessera::parallel {

class PartialSums {
 public:
  /// Makes memory for one sum, [fsdp, chunk_elements], whose values do not matter.
  using Allocate = std::function<at::Tensor()>;

  /// `tree`: microbatches are added over the fixed binary tree of their numbers, in whatever order
  /// they come (deterministic order); else in the order of the calls.
  PartialSums(bool tree, Allocate allocate) : tree_(tree), allocate_(std::move(allocate)) {}

  /// Where gradients go.
  struct Place {
    at::Tensor flat;
    bool first;  ///< they replace what is there; else they are added
  };
  /// Calls for the same microbatch follow each other.
  Place of(std::int64_t microbatch);
  bool empty() const { return partials_.empty(); }
  /// The sum of all, and forgets them; zeros if there are none.
  at::Tensor take();
  void clear() { partials_.clear(); }
  template <class Look>
  void for_each(const Look& look) const {
    for (const Partial& partial : partials_) look(partial.flat);
  }

 private:
  struct Partial {  ///< gradients of 2^level microbatches, the index-th such
    int level;
    std::int64_t index;
    at::Tensor flat;
    std::int64_t first() const { return index << level; }
  };
  void merge();
  bool merge_last();

  bool tree_;
  Allocate allocate_;
  std::vector<Partial> partials_;
};

}  // namespace tessera::parallel
