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
typedef std::uint64_t U64 __attribute__((vector_size(vector_bytes)));
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
TESSERA_HD U64 product_of_halves(U64 a, U64 b) {
  return U64(_mm512_mul_epu32(__m512i(a), __m512i(b)));
}
/// As in elements.hpp, which has it for what has no such instruction.
TESSERA_HD F32 scaled_or_zero(F32 p, F32 n, F32 x, float lowest) {
  return F32(_mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, broadcast(lowest), _CMP_NLT_UQ), p, n));
}
TESSERA_HD F64 scaled_or_zero(F64 p, F64 n, F64 x, double lowest) {
  return F64(_mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, broadcast(lowest), _CMP_NLT_UQ), p, n));
}
#elif defined(__AVX2__)
TESSERA_HD F32 broadcast(float a) { return F32(_mm256_set1_ps(a)); }
TESSERA_HD F64 broadcast(double a) { return F64(_mm256_set1_pd(a)); }
TESSERA_HD F32 fma(F32 a, F32 b, F32 c) { return F32(_mm256_fmadd_ps(a, b, c)); }
TESSERA_HD F64 fma(F64 a, F64 b, F64 c) { return F64(_mm256_fmadd_pd(a, b, c)); }
TESSERA_HD F32 square_root(F32 a) { return F32(_mm256_sqrt_ps(a)); }
TESSERA_HD F64 square_root(F64 a) { return F64(_mm256_sqrt_pd(a)); }
TESSERA_HD U64 product_of_halves(U64 a, U64 b) {
  return U64(_mm256_mul_epu32(__m256i(a), __m256i(b)));
}
#else
TESSERA_HD F32 broadcast(float a) { return F32(_mm_set1_ps(a)); }
TESSERA_HD F64 broadcast(double a) { return F64(_mm_set1_pd(a)); }
TESSERA_HD F32 fma(F32 a, F32 b, F32 c) { return a * b + c; }
TESSERA_HD F64 fma(F64 a, F64 b, F64 c) { return a * b + c; }
TESSERA_HD F32 square_root(F32 a) { return F32(_mm_sqrt_ps(a)); }
TESSERA_HD F64 square_root(F64 a) { return F64(_mm_sqrt_pd(a)); }
TESSERA_HD U64 product_of_halves(U64 a, U64 b) {
  return U64(_mm_mul_epu32(__m128i(a), __m128i(b)));
}
#endif

/// The upper halves of the products of 32-bit numbers; product_of_halves() multiplies the lower
/// halves of 64-bit ones.
TESSERA_HD U32 product_high(U32 a, std::uint32_t b) {
  const U64 even = U64(a), factor = U64{} + b;
  const U64 high = product_of_halves(even, factor) >> 32;
  const U64 odd = product_of_halves(even >> 32, factor) & 0xffffffff00000000U;
  return U32(high | odd);
}

/// Lanes joined by op, half by half.
template <class Op>
TESSERA_HD float fold(__m128 v, const Op& op) {
  v = op(v, _mm_movehl_ps(v, v));
  return op(v, _mm_shuffle_ps(v, v, 1))[0];
}
template <class Op>
TESSERA_HD double fold(__m128d v, const Op& op) {
  return op(v, _mm_unpackhi_pd(v, v))[0];
}
#if defined(__AVX2__)
template <class Op>
TESSERA_HD float fold(__m256 v, const Op& op) {
  return fold(op(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)), op);
}
template <class Op>
TESSERA_HD double fold(__m256d v, const Op& op) {
  return fold(op(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1)), op);
}
#endif
#if defined(__AVX512F__)
template <class Op>
TESSERA_HD float fold(__m512 v, const Op& op) {
  return fold(op(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)), op);
}
template <class Op>
TESSERA_HD double fold(__m512d v, const Op& op) {
  return fold(op(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1)), op);
}
#endif

TESSERA_HD F32 reciprocal(F32 a) { return 1.0F / a; }
TESSERA_HD F64 reciprocal(F64 a) { return 1.0 / a; }

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
