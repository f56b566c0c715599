// SPDX-License-Identifier: Apache-2.0
// Stored elements in the type that they are computed in, and back.
#pragma once

#include "elements.hpp"
#include "noise.hpp"
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

/// Rounds up with the probability of the part that is cut, by the low 16 bits of `bits`: the mean
/// of many roundings is the number. NaN and infinity stay.
template <class T>
TESSERA_HD T narrow_randomly(Compute<T> v, std::uint32_t) {
  return v;
}
template <>
TESSERA_HD Bf16 narrow_randomly<Bf16>(float v, std::uint32_t bits) {
  const auto exact = bits_as<std::uint32_t>(v);
  const std::uint32_t rounded = (exact + (bits & 0xffffU)) >> 16;
#if defined(__CUDA_ARCH__)
  return {static_cast<std::uint16_t>(v != v ? 0x7fc0U : rounded)};  // two instructions, not five
#else
  const auto nan = static_cast<std::uint32_t>(
      (0x7f800000 - static_cast<std::int32_t>(exact & 0x7fffffffU)) >> 31);  // all bits, or none
  return {static_cast<std::uint16_t>((rounded & ~nan) | (0x7fc0U & nan))};
#endif
}

/// Rounds `state` to what is stored: to nearest, or by the random bits of the element's number.
template <class V, class P, class M>
TESSERA_HD void store_state(const AdamWState<V>& state, const RoundingNoise& noise,
                            std::int64_t number, P& param, M& exp_avg, M& exp_avg_sq) {
  if constexpr (sizeof(P) == 2 || sizeof(M) == 2)
    if (noise.on) {
      const RandomBits bits = random_bits(noise, number);
      param = narrow_randomly<P>(state.param, bits.low);
      exp_avg = narrow_randomly<M>(state.exp_avg, bits.low >> 16);
      exp_avg_sq = narrow_randomly<M>(state.exp_avg_sq, bits.high);
      return;
    }
  param = narrow<P>(state.param);
  exp_avg = narrow<M>(state.exp_avg);
  exp_avg_sq = narrow<M>(state.exp_avg_sq);
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
