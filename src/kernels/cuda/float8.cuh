// SPDX-License-Identifier: Apache-2.0
// What kernels of 8-bit floating point share.
#pragma once

#include "cuda/launch.cuh"
#include "float8_formats.hpp"

#if defined(__CUDACC__)
#include <cuda_fp8.h>
#endif

namespace tessera::kernels::device {

/// The quotient in float64, rounded to float32. Of float32 numbers it is the quotient in float32
/// (Figueroa, "When is double rounding innocuous?", 1995).
__device__ inline float quotient(double a, double b) { return static_cast<float>(a / b); }
__device__ inline float quotient(float a, float b) { return a / b; }

/// See scales_for of scaled_bytes.hpp.
template <class C>
__device__ float scale_for(C largest, double most, bool powers_of_two) {
  const float scale =
      largest < 1e-12 ? static_cast<float>(most / 1e-12) : quotient(static_cast<C>(most), largest);
  // Without the mantissa, but for a NaN.
  return powers_of_two && scale == scale
             ? bits_as<float>(bits_as<std::uint32_t>(scale) & 0xff800000u)
             : scale;
}

/// Neighbours as bytes. The hardware's conversion has the bits of Format's, but for a NaN's sign.
template <class Format, int size>
__device__ Pack<std::uint8_t, size> bytes_of(const float (&values)[size]) {
  Pack<std::uint8_t, size> bytes;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr auto format = Format::largest == E4m3::largest ? __NV_E4M3 : __NV_E5M2;
  if constexpr (size % 2 == 0) {
    for (int k = 0; k < size; k += 2) {
      const auto two = __nv_cvt_float2_to_fp8x2({values[k], values[k + 1]}, __NV_SATFINITE, format);
      bytes.items[k] = static_cast<std::uint8_t>(two & 0xff);
      bytes.items[k + 1] = static_cast<std::uint8_t>(two >> 8);
    }
  } else {
    for (int k = 0; k < size; ++k)
      bytes.items[k] = __nv_cvt_float_to_fp8(values[k], __NV_SATFINITE, format);
  }
#else
  for (int k = 0; k < size; ++k) bytes.items[k] = Format::byte_of(values[k]);
#endif
  return bytes;
}

/// Neighbours, each times scale(k), as bytes.
template <class Format, int size, class T, class Scale>
__device__ Pack<std::uint8_t, size> rounded(const Pack<T, size>& pack, const Scale& scale) {
  float scaled[size];
  for (int k = 0; k < size; ++k) scaled[k] = static_cast<float>(wide(pack.items[k]) * scale(k));
  return bytes_of<Format>(scaled);
}

}  // namespace tessera::kernels::device
