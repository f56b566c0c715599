// SPDX-License-Identifier: Apache-2.0
// Arithmetic of boxes: axis-aligned parts of a global tensor, each stored row-major.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/dtype.hpp"

namespace tessera {

using Shape = std::vector<std::int64_t>;

/// The elements [offset, offset + extent) of a tensor, dimension by dimension.
struct Box {
  Shape offset;
  Shape extent;
  bool operator==(const Box&) const = default;
};

/// The box that is all of a tensor.
inline Box whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

/// Product of the extents; 1 for a scalar.
std::int64_t element_count(const Shape& shape) noexcept;
inline std::int64_t element_count(const Box& box) noexcept { return element_count(box.extent); }

/// Bytes of a tensor of this shape, or nothing when a dimension is negative or the product
/// overflows: for shapes from files.
std::optional<std::int64_t> checked_bytes(const Shape& shape, DType dtype) noexcept;
/// True when the box has the shape's dimensions and is in it.
bool lies_in(const Box& box, const Shape& shape) noexcept;
/// "[3:7, 0:64]".
std::string to_string(const Box& box);
/// "[3, 64]".
std::string to_string(const Shape& shape);

/// What two boxes of one tensor share; nothing when that is empty. Two scalars share their element.
std::optional<Box> intersect(const Box& a, const Box& b);

/// Visits an overlap as runs of elements that are contiguous both in `source` and in `target`, in
/// ascending order of both. Indices count elements from the beginning of the source and target
/// boxes.
class RunCursor {
 public:
  RunCursor(const Box& overlap, const Box& source, const Box& target);
  bool done() const { return left_ == 0; }
  std::int64_t source() const { return source_ + position_; }
  std::int64_t target() const { return target_ + position_; }
  /// Elements left in this run.
  std::int64_t length() const { return run_ - position_; }
  /// Source elements from the start of this run to that of the next one; 0 when this is the last
  /// kind of step.
  std::int64_t stride() const { return dims_.empty() ? 0 : dims_.back().source_stride; }
  /// Advances by `count` <= length() elements.
  void advance(std::int64_t count);
  /// One past the last source element of the overlap.
  std::int64_t source_end() const { return source_end_; }

 private:
  struct Dim {
    std::int64_t extent, index, source_stride, target_stride;
  };
  void next_run();
  std::vector<Dim> dims_;  ///< the dimensions outside the run, outermost first
  std::int64_t run_ = 1, position_ = 0, left_ = 0;
  std::int64_t source_ = 0, target_ = 0, source_end_ = 0;
};

}  // namespace tessera
