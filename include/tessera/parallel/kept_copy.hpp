// SPDX-License-Identifier: Apache-2.0
// Weights in bf16 that need no gather but a cast of their float32 masters: their memory stays from
// step to step, and the optimizer writes it as it writes the masters.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <utility>

namespace tessera::parallel {

/// Of one group. The copy is stale unless the optimizer has just written it. A stale one is cast
/// again before use.
class KeptCopy {
 public:
  /// Of a group that never keeps one.
  KeptCopy() = default;
  /// `weights`: a whole storage as long as `masters`, whose memory may be released; bf16.
  KeptCopy(at::Tensor weights, at::Tensor masters)
      : weights_(std::move(weights)), masters_(std::move(masters)) {}

  /// Between steps; nothing is kept until it is called. Units whose weights stay until the end of a
  /// step want it: then a step's peak of memory stays the same.
  void keep(bool wanted);
  bool is_kept() const { return kept_; }
  /// Where the optimizer writes the values of `weights` too, which is a part of the copy; undefined
  /// without memory of a kept copy.
  at::Tensor to_write(const at::Tensor& weights) const;
  /// The optimizer has written all of it: the next step casts nothing.
  void mark_current() { current_ = has_memory(); }
  /// Masters change.
  void mark_stale() { current_ = false; }
  /// Casts a stale copy of a group that keeps one.
  void refresh();
  /// Gives its memory back until it is used again.
  void free();
  /// How often it was given back: a graph that reads the copy holds while this stays the same.
  int times_freed() const { return times_freed_; }

 private:
  bool has_memory() const;

  at::Tensor weights_, masters_;
  bool kept_ = false;
  bool current_ = false;
  int times_freed_ = 0;
};

}  // namespace tessera::parallel
