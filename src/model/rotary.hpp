// SPDX-License-Identifier: Apache-2.0
// Angles of rotary position embeddings, tabulated.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// Shared by the cells of all layers: [positions, rotated dimensions / 2] each.
struct Angles {
  at::Tensor cos, sin;
};

/// With the shape's scaling, in `dtype` (float32 or float64).
Angles rotary_angles(const DecoderShape& shape, std::int64_t positions, at::ScalarType dtype);

/// Does the shape's YaRN apply to a model for this many positions?
bool stretched(const DecoderShape& shape, std::int64_t positions);

}  // namespace tessera::model
