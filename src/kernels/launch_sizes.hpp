// SPDX-License-Identifier: Apache-2.0
// How device kernels split their work, where it gives their results a size.
#pragma once

#include <cstdint>

namespace tessera::kernels::device {

/// Rows whose weight gradients are summed together: one row of rms_norm_backward's partial sums
/// each. More of narrow rows, so that the partial sums stay few beside the rows.
inline std::int64_t rows_per_block(std::int64_t width) {
  return width <= 256 ? 256 : width <= 1024 ? 64 : 32;
}

/// Values whose squares are summed together.
inline constexpr std::int64_t squares_per_block = 65536;

}  // namespace tessera::kernels::device
