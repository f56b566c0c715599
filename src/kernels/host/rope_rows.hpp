// SPDX-License-Identifier: Apache-2.0
// Rotary embedding over positions.
#pragma once

#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// Lanes 1 0 3 2 ... of v.
template <class V>
TESSERA_HD V swapped(V v) {
  typename ElementOf<V>::Bits order;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(v[0]); ++i) order[i] = i ^ 1;
  return __builtin_shuffle(v, order);
}

/// Columns of a head whose angles are spread out at a time.
inline constexpr std::int64_t rope_block = 256;

/// Cosines as c0 c0 c1 c1 ... and sines as -s0 s0 -s1 s1 ..., of `count` <= rope_block columns.
template <class C>
TESSERA_HD void spread_angles(const C* cos, const C* sin, C sign, std::int64_t count, C* cosines,
                              C* sines) {
  for (std::int64_t i = 0; i < count; ++i) {
    cosines[i] = cos[i / 2];
    sines[i] = i % 2 == 0 ? -sign * sin[i / 2] : sign * sin[i / 2];
  }
}

/// y may be x.
template <class T>
void rope(const T* x, const Compute<T>* cos, const Compute<T>* sin, T* y, RopeExtent extent,
          Compute<T> sign) {
  Compute<T> cosines[rope_block], sines[rope_block];
  for (std::int64_t position = 0; position < extent.positions;
       ++position, x += extent.stride, y += extent.out_stride) {
    const std::int64_t angles = position * extent.head_dim / 2;
    for (std::int64_t begin = 0; begin < extent.head_dim; begin += rope_block) {
      const std::int64_t count =
          extent.head_dim - begin < rope_block ? extent.head_dim - begin : rope_block;
      spread_angles(cos + angles + begin / 2, sin + angles + begin / 2, sign, count, cosines,
                    sines);
      for (std::int64_t head = 0; head < extent.heads; ++head)
        for_vectors<T>(count, [&, at = head * extent.head_dim + begin](std::int64_t i, auto part) {
          const auto v = load(x + at + i, part);
          store(y + at + i, fma(v, load(cosines + i, part), swapped(v) * load(sines + i, part)),
                part);
        });
    }
  }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
