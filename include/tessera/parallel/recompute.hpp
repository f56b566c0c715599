// SPDX-License-Identifier: Apache-2.0
// Activation recompute: what a unit's forward leaves in memory for its backward
// (https://arxiv.org/abs/1604.06174).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tessera/model/flow.hpp"

namespace tessera::parallel {

/// What backward computes again.
enum class Recompute : std::uint8_t {
  nothing,
  operations,  ///< what is cheap: norms, SwiGLU, gathers of tokens; results of attention are kept,
               ///< and of products but for plan::RecomputePolicy::products
  unit,        ///< all of it, from the unit's input
};

/// Bytes that one microbatch leaves in a unit, for each way of recomputing.
struct ActivationBytes {
  std::int64_t nothing = 0, operations = 0, unit = 0;
};

/// The least recompute whose bytes stay below the budget: by operation first, then whole units; the
/// first units first, since their activations live longest.
std::vector<Recompute> recompute_within(std::span<const ActivationBytes> units, double budget);

/// Tensors of one pass that can be made again: their memory is freed after forward and filled
/// before backward, while the graph keeps holding them.
class Remakes {
 public:
  /// `made` must be the only tensor in its memory. remake() must give the same bits; it runs
  /// without autograd.
  void add(const at::Tensor& made, std::function<at::Tensor()> remake);
  /// Drops them, but for those that `in` or `out` shows to others.
  void drop(const model::Flow& in, const model::Flow& out);
  /// Makes the dropped ones again, in the order in which they were added.
  void restore();
  /// Bytes that drop() freed.
  std::int64_t dropped_bytes() const;

 private:
  struct Entry {
    at::Tensor made;
    std::function<at::Tensor()> remake;
    std::int64_t bytes;
  };
  std::vector<Entry> entries_;
};

}  // namespace tessera::parallel
