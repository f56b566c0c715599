// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/tensor_slice.hpp"

#include <fmt/format.h>

#include "tessera/base/box.hpp"

namespace tessera {

std::int64_t element_count(const Shape& shape) noexcept {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string to_string(const TensorInfo& tensor) {
  return fmt::format("{} {}", name_of(tensor.dtype), to_string(tensor.shape));
}

}  // namespace tessera
