// SPDX-License-Identifier: Apache-2.0
// Angles of rotary position embeddings, tabulated.
#pragma once

#include "tessera/model/cell.hpp"
#include "tessera/model_spec/decoder_shape.hpp"

namespace tessera::model {

/// Of positions 0 to `positions` - 1, with the scaling of a shape whose YaRN is settled, in `dtype`
/// (float32 or float64).
Angles rotary_angles(const DecoderShape& shape, std::int64_t positions, at::ScalarType dtype);

}  // namespace tessera::model
