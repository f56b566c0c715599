// SPDX-License-Identifier: Apache-2.0
// Vectors of the instruction set that the including file is compiled for, and their arithmetic
// beyond + - * /.
#pragma once

#include <immintrin.h>

#include "numbers.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

typedef float F32 __attribute__((vector_size(vector_bytes)));
typedef double F64 __attribute__((vector_size(vector_bytes)));
typedef std::int32_t I32 __attribute__((vector_size(vector_bytes)));
typedef std::uint32_t U32 __attribute__((vector_size(vector_bytes)));
typedef std::int64_t I64 __attribute__((vector_size(vector_bytes)));
typedef std::uint16_t U16 __attribute__((vector_size(vector_bytes / 2)));
typedef float HalfF32 __attribute__((vector_size(vector_bytes / 2)));

template <>
struct ElementOf<F32> {
  using Scalar = float;
  using Bits = I32;
};
template <>
struct ElementOf<F64> {
  using Scalar = double;
  using Bits = I64;
};

#if defined(__AVX512F__)
TESSERA_HD F32 broadcast(float a) { return F32(_mm512_set1_ps(a)); }
TESSERA_HD F64 broadcast(double a) { return F64(_mm512_set1_pd(a)); }
TESSERA_HD F32 fma(F32 a, F32 b, F32 c) { return F32(_mm512_fmadd_ps(a, b, c)); }
TESSERA_HD F64 fma(F64 a, F64 b, F64 c) { return F64(_mm512_fmadd_pd(a, b, c)); }
TESSERA_HD F32 square_root(F32 a) { return F32(_mm512_sqrt_ps(a)); }
TESSERA_HD F64 square_root(F64 a) { return F64(_mm512_sqrt_pd(a)); }
#elif defined(__AVX2__)
TESSERA_HD F32 broadcast(float a) { return F32(_mm256_set1_ps(a)); }
TESSERA_HD F64 broadcast(double a) { return F64(_mm256_set1_pd(a)); }
TESSERA_HD F32 fma(F32 a, F32 b, F32 c) { return F32(_mm256_fmadd_ps(a, b, c)); }
TESSERA_HD F64 fma(F64 a, F64 b, F64 c) { return F64(_mm256_fmadd_pd(a, b, c)); }
TESSERA_HD F32 square_root(F32 a) { return F32(_mm256_sqrt_ps(a)); }
TESSERA_HD F64 square_root(F64 a) { return F64(_mm256_sqrt_pd(a)); }
#else
TESSERA_HD F32 broadcast(float a) { return F32(_mm_set1_ps(a)); }
TESSERA_HD F64 broadcast(double a) { return F64(_mm_set1_pd(a)); }
TESSERA_HD F32 fma(F32 a, F32 b, F32 c) { return a * b + c; }
TESSERA_HD F64 fma(F64 a, F64 b, F64 c) { return a * b + c; }
TESSERA_HD F32 square_root(F32 a) { return F32(_mm_sqrt_ps(a)); }
TESSERA_HD F64 square_root(F64 a) { return F64(_mm_sqrt_pd(a)); }
#endif

TESSERA_HD F32 reciprocal(F32 a) { return 1.0F / a; }
TESSERA_HD F64 reciprocal(F64 a) { return 1.0 / a; }

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
