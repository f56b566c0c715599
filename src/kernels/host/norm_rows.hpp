// SPDX-License-Identifier: Apache-2.0
// RMSNorm over rows.
#pragma once

#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// The row that is to be normed: x, or where there is a residual, the sum.
template <class T>
const T* summed_row(const NormInput<T>& in, std::int64_t begin, std::int64_t width) {
  const T* const x = in.x + begin;
  if (in.residual == nullptr) return x;
  const T* const residual = in.residual + begin;
  T* const sum = in.sum + begin;
  for_vectors<T>(width, [&](std::int64_t i, auto part) {
    store(sum + i, load(x + i, part) + load(residual + i, part), part);
  });
  return sum;
}

template <class T>
void rms_norm(const NormInput<T>& in, const T* weight, T* y, Compute<T>* rstd, Extent extent,
              double eps) {
  using C = Compute<T>;
  for (std::int64_t row = 0; row < extent.rows; ++row, y += extent.width) {
    const T* const x = summed_row(in, row * extent.width, extent.width);
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
void rms_norm_backward(const NormGradient<T>& gradient, const T* x, const T* weight,
                       const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent) {
  using C = Compute<T>;
  using V = VecOf<T>;
  for (std::int64_t row = 0; row < extent.rows; ++row, x += extent.width, dx += extent.width) {
    const T* const dy = gradient.y + row * extent.width;
    const T* const more = gradient.sum == nullptr ? nullptr : gradient.sum + row * extent.width;
    const C r = rstd[row];
    const C dot = fold(sum_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      return load(dy + i, part) * load(weight + i, part) * load(x + i, part);
    }));
    const V projection = V{} + r * r * r * dot / C(extent.width);
    for_vectors<T>(extent.width, [&](std::int64_t i, auto part) {
      const V g = load(dy + i, part), v = load(x + i, part);
      const V of_x = rms_norm_gradient(g * load(weight + i, part), v, V{} + r, projection);
      store(dx + i, more == nullptr ? of_x : of_x + load(more + i, part), part);
      store(dweight + i, fma(g, v * r, load(dweight + i, part)), part);
    });
  }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
