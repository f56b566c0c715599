// SPDX-License-Identifier: Apache-2.0
// In which type values of another one are added up.
#pragma once

#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {

/// float64 for float64, float32 for all others.
inline at::ScalarType accumulation_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}
inline at::ScalarType accumulation_type(const at::Tensor& x) {
  return accumulation_type(x.scalar_type());
}

}  // namespace tessera::kernels
