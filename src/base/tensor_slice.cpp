// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/tensor_slice.hpp"

#include <fmt/format.h>

namespace tessera {

std::size_t bytes_of(const TensorSlice& slice) noexcept {
  return static_cast<std::size_t>(element_count(slice.box)) * size_of(slice.dtype);
}

std::string to_string(const TensorInfo& tensor) {
  return fmt::format("{} {}", name_of(tensor.dtype), to_string(tensor.shape));
}

}  // namespace tessera
