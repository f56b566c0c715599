// SPDX-License-Identifier: Apache-2.0
// Angles of rotary position embeddings, tabulated.
#pragma once

#include "tessera/model/cell.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// Of positions 0 to `positions` - 1, with the shape's scaling, in `dtype` (float32 or float64).
Angles rotary_angles(const DecoderShape& shape, std::int64_t positions, at::ScalarType dtype);

/// Does the shape's YaRN apply to a model for this many positions?
bool stretched(const DecoderShape& shape, std::int64_t positions);

}  // namespace tessera::model
