// SPDX-License-Identifier: Apache-2.0
// Tensors that lie one after the other in memory, as parts of a flat buffer do: one kernel may take
// them all.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstddef>
#include <span>

namespace tessera::kernels {

/// Does `next` begin where `before` ends, in the same memory and type? Both are contiguous, or both
/// undefined.
inline bool follows(const at::Tensor& before, const at::Tensor& next) {
  if (!before.defined() || !next.defined()) return before.defined() == next.defined();
  return before.is_alias_of(next) && before.scalar_type() == next.scalar_type() &&
         before.storage_offset() + before.numel() == next.storage_offset();
}

/// `count` elements in a line from the first of `tensor` on: it and those that follow it.
inline at::Tensor line_from(const at::Tensor& tensor, std::int64_t count) {
  return tensor.defined() ? tensor.as_strided({count}, {1}) : tensor;
}

/// line(part) for each longest part of `items` in which every item joins(before, item) the one
/// before it.
template <class Item, class Joins, class Line>
void for_lines(std::span<const Item> items, const Joins& joins, const Line& line) {
  for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    end = begin + 1;
    while (end < items.size() && joins(items[end - 1], items[end])) ++end;
    line(items.subspan(begin, end - begin));
  }
}

}  // namespace tessera::kernels
