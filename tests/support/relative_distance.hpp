// SPDX-License-Identifier: Apache-2.0
// How far a result is from what it should be.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cmath>

namespace tessera::test {

/// In float64 and host memory.
inline at::Tensor exact(const at::Tensor& x) { return x.detach().to(at::kCPU, at::kDouble); }

/// Relative L2 distance, computed in float64; 0 for two zeros, infinite for other shapes.
inline double relative_distance(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes()) return HUGE_VAL;
  const at::Tensor g = exact(got), w = exact(want);
  return ((g - w).norm() / (w.norm() + 1e-300)).item<double>();
}

}  // namespace tessera::test
