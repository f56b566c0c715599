// SPDX-License-Identifier: Apache-2.0
// A stored element in the type that it is computed in, and back.
#pragma once

#include "numbers.hpp"
#include "row_types.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

TESSERA_HD float wide(float v) { return v; }
TESSERA_HD double wide(double v) { return v; }
TESSERA_HD float wide(Bf16 v) { return bits_as<float>(static_cast<std::uint32_t>(v.bits) << 16); }

template <class T>
TESSERA_HD T narrow(Compute<T> v) {
  return v;
}
/// Round to nearest even; a NaN stays one. With a comparison, GCC makes a branch and no vector
/// instructions. On GPUs it is one instruction, where these integers are six.
template <>
TESSERA_HD Bf16 narrow<Bf16>(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint16_t rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(v));
  return {rounded};
#else
  const auto bits = bits_as<std::uint32_t>(v);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const auto nan = static_cast<std::uint32_t>(
      (0x7f800000 - static_cast<std::int32_t>(bits & 0x7fffffffu)) >> 31);  // all bits, or none
  return {static_cast<std::uint16_t>((rounded & ~nan) | (0x7fc0u & nan))};
#endif
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
