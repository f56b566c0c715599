// SPDX-License-Identifier: Apache-2.0
// Reading, writing and folding rows by vectors. Only compiler built-ins: inline library code
// compiled with other flags would be merged by the linker with everybody else's copy.
#pragma once

#include "host/vectors.hpp"  // before elements.hpp, which calls its functions

#include "elements.hpp"
#include "host/row_functions.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

template <class T>
TESSERA_HD T* row_of(Rows<T> rows, std::int64_t row) {
  return rows.data + row * rows.stride;
}

/// How a stored type T is read into a vector of the type it is computed in, and written back.
/// `lanes` elements at a time.
template <class T>
struct Lanes;

template <>
struct Lanes<float> {
  using Vec = F32;
  static TESSERA_HD Vec load(const float* p) {
    Vec v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static TESSERA_HD void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }
  static TESSERA_HD void store(float* p, Vec v, U32) { store(p, v); }
};

template <>
struct Lanes<double> {
  using Vec = F64;
  static TESSERA_HD Vec load(const double* p) {
    Vec v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
  static TESSERA_HD void store(double* p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }
};

template <>
struct Lanes<Bf16> {
  using Vec = F32;
  static TESSERA_HD Vec load(const Bf16* p) {
    U16 half;
    __builtin_memcpy(&half, p, sizeof half);
    return Vec(__builtin_convertvector(half, U32) << 16);
  }
  /// Round to nearest even; a NaN stays one.
  static TESSERA_HD void store(Bf16* p, Vec v) {
    const U32 bits = U32(v);
    store_cut(p, v, bits + 0x7fffU + ((bits >> 16) & 1U));
  }
  /// Round by the low 16 bits of `noise`; see noise.hpp.
  static TESSERA_HD void store(Bf16* p, Vec v, U32 noise) {
    store_cut(p, v, U32(v) + (noise & 0xffffU));
  }

 private:
  static TESSERA_HD void store_cut(Bf16* p, Vec v, U32 sum) {
    const U32 rounded = v != v ? U32{} + 0x7fc0U : sum >> 16;
    const U16 half = __builtin_convertvector(rounded, U16);
    __builtin_memcpy(p, &half, sizeof half);
  }
};

template <class T>
using VecOf = typename Lanes<T>::Vec;
template <class T>
inline constexpr std::int64_t lanes = sizeof(VecOf<T>) /
                                      sizeof(typename ElementOf<VecOf<T>>::Scalar);

/// All lanes, or the first `count` of them: the tail of a row. Both run the same vector arithmetic,
/// so an element's bits do not depend on its position.
struct Whole {};
struct Part {
  std::int64_t count;
};

template <class T>
TESSERA_HD VecOf<T> load(const T* p, Whole) {
  return Lanes<T>::load(p);
}
template <class T>
TESSERA_HD void store(T* p, VecOf<T> v, Whole) {
  Lanes<T>::store(p, v);
}
template <class T>
TESSERA_HD VecOf<T> load(const T* p, Part part) {
  T padded[lanes<T>] = {};
  for (std::int64_t i = 0; i < part.count; ++i) padded[i] = p[i];
  return Lanes<T>::load(padded);
}
template <class T>
TESSERA_HD void store(T* p, VecOf<T> v, Part part) {
  T padded[lanes<T>];
  Lanes<T>::store(padded, v);
  for (std::int64_t i = 0; i < part.count; ++i) p[i] = padded[i];
}
/// Rounded by `noise` where T is Bf16.
template <class T>
TESSERA_HD void store(T* p, VecOf<T> v, U32 noise, Whole) {
  Lanes<T>::store(p, v, noise);
}
template <class T>
TESSERA_HD void store(T* p, VecOf<T> v, U32 noise, Part part) {
  T padded[lanes<T>];
  Lanes<T>::store(padded, v, noise);
  for (std::int64_t i = 0; i < part.count; ++i) p[i] = padded[i];
}

/// body(i, Whole) for each whole vector of a row of n elements, then body(i, Part) for what is
/// left. Absent lanes load as 0.
template <class T, class Body>
TESSERA_HD void for_vectors(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) body(i, Whole{});
  if (i < n) body(i, Part{n - i});
}

/// Sum over a row with four accumulators, folded in a fixed order that depends on n alone. term(i,
/// part) -> vector.
template <class T, class Term>
TESSERA_HD VecOf<T> sum_vectors(std::int64_t n, const Term& term) {
  VecOf<T> sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * lanes<T> <= n; i += 4 * lanes<T>)
    for (int k = 0; k < 4; ++k) sums[k] += term(i + k * lanes<T>, Whole{});
  for (; i + lanes<T> <= n; i += lanes<T>) sums[0] += term(i, Whole{});
  if (i < n) sums[1] += term(i, Part{n - i});
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// Sum of the lanes, by halves.
template <class V>
TESSERA_HD typename ElementOf<V>::Scalar fold(V v) {
  return fold(v, [](auto a, auto b) { return a + b; });
}

/// Whether any bit is set.
template <class Bits>
TESSERA_HD bool any(Bits bits) {
  auto all = bits[0];
  for (std::size_t i = 1; i < sizeof bits / sizeof bits[0]; ++i) all |= bits[i];
  return all != 0;
}

template <class V>
TESSERA_HD V larger(V a, V b) {
  return a > b ? a : b;
}

template <class V>
TESSERA_HD typename ElementOf<V>::Scalar fold_max(V v) {
  return fold(v, [](auto a, auto b) { return a > b ? a : b; });
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
