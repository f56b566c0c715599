// SPDX-License-Identifier: Apache-2.0
// RMSNorm over rows.
#pragma once

#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

template <class T>
void rms_norm(const T* x, const T* weight, T* y, Compute<T>* rstd, Extent extent, double eps) {
  using C = Compute<T>;
  for (std::int64_t row = 0; row < extent.rows; ++row, x += extent.width, y += extent.width) {
    const C squares = fold(sum_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      const auto v = load(x + i, part);
      return v * v;
    }));
    const C r = 1 / square_root(squares / C(extent.width) + C(eps));
    rstd[row] = r;
    for_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      store(y + i, load(x + i, part) * r * load(weight + i, part), part);
    });
  }
}

template <class T>
void rms_norm_backward(const T* dy, const T* x, const T* weight, const Compute<T>* rstd, T* dx,
                       Compute<T>* dweight, Extent extent) {
  using C = Compute<T>;
  using V = VecOf<T>;
  for (std::int64_t row = 0; row < extent.rows;
       ++row, x += extent.width, dy += extent.width, dx += extent.width) {
    const C r = rstd[row];
    const C dot = fold(sum_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      return load(dy + i, part) * load(weight + i, part) * load(x + i, part);
    }));
    const V projection = V{} + r * r * r * dot / C(extent.width);
    for_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      const V g = load(dy + i, part), v = load(x + i, part);
      store(dx + i, rms_norm_gradient(g * load(weight + i, part), v, V{} + r, projection), part);
      store(dweight + i, fma(g, v * r, load(dweight + i, part)), part);
    });
  }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
