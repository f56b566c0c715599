// SPDX-License-Identifier: Apache-2.0
// Angles of rotary position embeddings, tabulated.
#pragma once

#include "tessera/model/cell.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// Does the shape's YaRN apply to a model that was trained on this many positions?
bool stretched(const DecoderShape& shape, std::int64_t trained_positions);

/// Of positions 0 to `positions` - 1, with the shape's scaling, in `dtype` (float32 or float64).
/// `stretched`: see above.
Angles rotary_angles(const DecoderShape& shape, std::int64_t positions, bool stretched,
                     at::ScalarType dtype);

}  // namespace tessera::model
