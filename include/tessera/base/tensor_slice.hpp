// SPDX-License-Identifier: Apache-2.0
// A box of a named global tensor: what one rank holds. The word that parallel, checkpoint and plan
// share.
#pragma once

#include <cstddef>
#include <string>

#include "tessera/base/box.hpp"
#include "tessera/base/dtype.hpp"

namespace tessera {

/// The elements of tensor `name` in a box, stored contiguously in row-major order.
struct TensorSlice {
  std::string name;  ///< e.g. "model/layers.0.attention.wq.weight"
  DType dtype = DType::f32;
  Shape global_shape;
  Box box;
};

/// Bytes of its elements.
std::size_t bytes_of(const TensorSlice& slice) noexcept;

/// A whole tensor, as files hold it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// "f32 [3, 64]".
std::string to_string(const TensorInfo& tensor);

}  // namespace tessera
