// Rotary embedding over positions.
#pragma once

#include "host/simd.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// Lanes 0 0 1 1 2 2 ... of v.
template <class V> TESSERA_HD V doubled(V v) {
  typename ElementOf<V>::Bits order;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(v[0]); ++i) order[i] = i / 2;
  return __builtin_shuffle(v, order);
}

/// Lanes 1 0 3 2 ... of v.
template <class V> TESSERA_HD V swapped(V v) {
  typename ElementOf<V>::Bits order;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(v[0]); ++i) order[i] = i ^ 1;
  return __builtin_shuffle(v, order);
}

/// The first half vector of a table, doubled: angles of `count` <= lanes/2 pairs.
template <class C> TESSERA_HD VecOf<C> load_doubled(const C* table, std::int64_t count) {
  VecOf<C> v{};
  if (count == lanes<C> / 2)
    __builtin_memcpy(&v, table, sizeof v / 2);
  else
    v = load(table, Part{count});
  return doubled(v);
}

template <class T> void rope(const T* x, const Compute<T>* cos, const Compute<T>* sin, T* y, RopeExtent extent, Compute<T> sign) {
  using V = VecOf<T>;
  const std::int64_t pairs = extent.head_dim / 2;
  V signs;
  for (std::int64_t i = 0; i < lanes<T>; ++i) signs[i] = i % 2 == 0 ? -sign : sign;
  for (std::int64_t position = 0; position < extent.positions; ++position) {
    for_vectors<T>(extent.head_dim, [&](std::int64_t i, auto part) {
      const std::int64_t count = pairs - i / 2 < lanes<T> / 2 ? pairs - i / 2 : lanes<T> / 2;
      const V c = load_doubled(cos + i / 2, count), s = load_doubled(sin + i / 2, count) * signs;
      for (std::int64_t head = 0; head < extent.heads; ++head) {
        const V v = load(x + head * extent.head_dim + i, part);
        store(y + head * extent.head_dim + i, fma(v, c, swapped(v) * s), part);
      }
    });
    x += extent.stride;
    y += extent.heads * extent.head_dim;
    cos += pairs;
    sin += pairs;
  }
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
