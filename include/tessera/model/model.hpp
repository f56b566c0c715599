// SPDX-License-Identifier: Apache-2.0
// A model that computes: its spec, and the function of each cell.
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/model/cell.hpp"
#include "tessera/model_spec/model_spec.hpp"

namespace tessera::model {

struct Model : ModelSpec {
  std::vector<CellFunctions> functions;  ///< by cell
  Angles angles;                         ///< of all positions; for CellContext::angles
};

/// The decoder of that shape. Angles are tabulated for `max_positions` positions, in the precision
/// of `dtype` (float64 for float64, else float32), on `device`. The length of trained sequences
/// (0: max_positions) decides whether a YaRN of `only_beyond` applies.
Model make_decoder(const DecoderShape& shape, std::int64_t max_positions, at::ScalarType dtype,
                   at::Device device = at::kCPU, std::int64_t trained_positions = 0);

}  // namespace tessera::model
