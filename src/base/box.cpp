// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/box.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tessera {

std::int64_t element_count(const Shape& shape) noexcept {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::optional<std::int64_t> checked_bytes(const Shape& shape, DType dtype) noexcept {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return empty ? 0 : bytes;
}

bool lies_in(const Box& box, const Shape& shape) noexcept {
  if (box.offset.size() != shape.size() || box.extent.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (box.offset[d] < 0 || box.extent[d] < 0 || box.offset[d] > shape[d] ||
        box.extent[d] > shape[d] - box.offset[d])
      return false;
  return true;
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (std::size_t d = 0; d < box.offset.size(); ++d)
    text +=
        fmt::format("{}{}:{}", d == 0 ? "" : ", ", box.offset[d], box.offset[d] + box.extent[d]);
  return text + "]";
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::optional<Box> intersect(const Box& a, const Box& b) {
  Box both = a;
  for (std::size_t d = 0; d < a.offset.size(); ++d) {
    const std::int64_t begin = std::max(a.offset[d], b.offset[d]);
    const std::int64_t end = std::min(a.offset[d] + a.extent[d], b.offset[d] + b.extent[d]);
    if (end <= begin) return std::nullopt;
    both.offset[d] = begin, both.extent[d] = end - begin;
  }
  return both;
}

RunCursor::RunCursor(const Box& overlap, const Box& source, const Box& target) {
  std::int64_t source_stride = 1, target_stride = 1, last = 0;
  bool contiguous = true;
  for (std::size_t d = overlap.offset.size(); d-- > 0;) {
    const std::int64_t extent = overlap.extent[d];
    source_ += (overlap.offset[d] - source.offset[d]) * source_stride;
    target_ += (overlap.offset[d] - target.offset[d]) * target_stride;
    last += (overlap.offset[d] - source.offset[d] + extent - 1) * source_stride;
    if (contiguous)
      run_ *= extent;
    else if (extent != 1)
      dims_.insert(dims_.begin(), Dim{extent, 0, source_stride, target_stride});
    contiguous = contiguous && extent == source.extent[d] && extent == target.extent[d];
    source_stride *= source.extent[d];
    target_stride *= target.extent[d];
  }
  source_end_ = last + 1;
  left_ = element_count(overlap.extent);
}

void RunCursor::advance(std::int64_t count) {
  position_ += count;
  left_ -= count;
  if (position_ == run_ && left_ != 0) next_run();
}

void RunCursor::next_run() {
  position_ = 0;
  for (std::size_t d = dims_.size(); d-- > 0;) {
    Dim& dim = dims_[d];
    source_ += dim.source_stride, target_ += dim.target_stride;
    if (++dim.index < dim.extent) return;
    source_ -= dim.extent * dim.source_stride, target_ -= dim.extent * dim.target_stride;
    dim.index = 0;
  }
}

}  // namespace tessera
