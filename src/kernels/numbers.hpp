// SPDX-License-Identifier: Apache-2.0
// Numbers as the kernels see them: float and double on host and device; host/vectors.hpp adds
// vectors of them. Each including file first names the namespace that the code is compiled into, so
// that no two instruction sets share a symbol.
#pragma once

#ifndef TESSERA_ISA_NAMESPACE
#error "define TESSERA_ISA_NAMESPACE before including numbers.hpp"
#endif

#include <cstdint>

#include "host_device.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// Number type and same-sized integers of V; vectors specialise it.
template <class V>
struct ElementOf;
template <>
struct ElementOf<float> {
  using Scalar = float;
  using Bits = std::int32_t;
};
template <>
struct ElementOf<double> {
  using Scalar = double;
  using Bits = std::int64_t;
};

template <class To, class From>
TESSERA_HD To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// a, but no more than `limit`, or no less; a NaN stays one.
template <class V>
TESSERA_HD V at_most(V a, V limit) {
  return a > limit ? limit : a;
}
template <class V>
TESSERA_HD V at_least(V a, V limit) {
  return a < limit ? limit : a;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // one instruction where a choice takes two
TESSERA_HD float at_most(float a, float limit) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(limit));
  return a;
}
TESSERA_HD float at_least(float a, float limit) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(limit));
  return a;
}
#endif

#if defined(__CUDA_ARCH__)
TESSERA_HD float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
TESSERA_HD double fma(double a, double b, double c) { return ::fma(a, b, c); }
TESSERA_HD float square_root(float a) { return ::sqrtf(a); }
TESSERA_HD double square_root(double a) { return ::sqrt(a); }
TESSERA_HD float reciprocal(float a) {
  return __fdividef(1.0F, a);
}  // within 2 units; a division takes 8 instructions
TESSERA_HD double reciprocal(double a) { return 1.0 / a; }
TESSERA_HD float inverse_root(float a) { return ::rsqrtf(a); }  // within 2 units
TESSERA_HD double inverse_root(double a) { return 1 / ::sqrt(a); }
#else
#if defined(__FMA__) || defined(__aarch64__)
TESSERA_HD float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TESSERA_HD double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
TESSERA_HD float fma(float a, float b, float c) { return a * b + c; }
TESSERA_HD double fma(double a, double b, double c) { return a * b + c; }
#endif
TESSERA_HD float square_root(float a) { return __builtin_sqrtf(a); }
TESSERA_HD double square_root(double a) { return __builtin_sqrt(a); }
TESSERA_HD float inverse_root(float a) { return 1 / square_root(a); }
TESSERA_HD double inverse_root(double a) { return 1 / square_root(a); }
TESSERA_HD float reciprocal(float a) { return 1.0F / a; }
TESSERA_HD double reciprocal(double a) { return 1.0 / a; }
#endif

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
