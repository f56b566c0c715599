// SPDX-License-Identifier: Apache-2.0
// A box of a named global tensor: what one rank holds. The word that parallel, checkpoint and plan
// share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/dtype.hpp"

namespace tessera {

using Shape = std::vector<std::int64_t>;

/// The elements [offset, offset + extent) of tensor `name`, dimension by dimension, stored
/// contiguously in row-major order.
struct TensorSlice {
  std::string name;  ///< e.g. "model/layers.0.attention.wq.weight"
  DType dtype = DType::f32;
  Shape global_shape;
  Shape offset;
  Shape extent;
};

/// A whole tensor, as files hold it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// "f32 [3, 64]".
std::string to_string(const TensorInfo& tensor);

/// Product of the extents; 1 for a scalar.
std::int64_t element_count(const Shape& shape) noexcept;

}  // namespace tessera
