// SPDX-License-Identifier: Apache-2.0
// What host and devices know of 8-bit numbers and their blocks.
#pragma once

#include <cstdint>

#include "tessera/base/dtype.hpp"

namespace tessera::kernels {

/// The largest finite number of f8e4m3 or f8e5m2. Throws ContractViolation for other types.
double largest_number(DType type);

/// Blocks of `block` elements in `size` elements; the last one may be shorter.
inline std::int64_t blocks_in(std::int64_t size, std::int64_t block) {
  return block >= size ? std::int64_t{size > 0} : (size + block - 1) / block;
}

}  // namespace tessera::kernels
