// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/tensor_slice.hpp"

namespace tessera {

std::int64_t element_count(const Shape& shape) noexcept {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace tessera
