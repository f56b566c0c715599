// SPDX-License-Identifier: Apache-2.0
// The 8-bit formats, as LibTorch has them.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/base/dtype.hpp"

namespace tessera::kernels::test {

inline constexpr DType float8_types[] = {DType::f8e4m3, DType::f8e5m2};

inline at::ScalarType torchs(DType type) {
  return type == DType::f8e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2;
}

inline double largest_of(DType type) { return type == DType::f8e4m3 ? 448 : 57344; }

}  // namespace tessera::kernels::test
