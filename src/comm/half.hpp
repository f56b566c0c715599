// SPDX-License-Identifier: Apache-2.0
// Conversions of 16-bit floats without branches, so that loops over them vectorise. Same bits as
// tessera/base/dtype.hpp. Internal linkage, because files for several instruction sets include this
// (reduction_kernels.inc says why that matters).
#pragma once

#include <cstdint>

namespace tessera::comm {
namespace {

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

[[maybe_unused]] float widen(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}

[[maybe_unused]] Bf16 narrow_to_bf16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40u;
  return {static_cast<std::uint16_t>(value != value ? quiet : rounded)};
}

/// Exponent and fraction are moved into place and rescaled by a multiplication, which is exact for
/// subnormals as well.
[[maybe_unused]] float widen(F16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(x.bits & 0x7fffu) << 13;
  const std::uint32_t scaled =
      __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude | 0x7f800000u;
  return __builtin_bit_cast(float, sign | (magnitude >= 0x0f800000u ? special : scaled));
}

/// Adding a power of two that depends on the exponent makes the FPU round at the right bit (M.
/// Dukhan's FP16 library).
[[maybe_unused]] F16 narrow_to_f16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t doubled = bits + bits;
  const std::uint32_t sign = (bits & 0x80000000u) >> 16;
  const float magnitude = __builtin_bit_cast(float, bits & 0x7fffffffu);
  const float base = (magnitude * 0x1p112f) * 0x1p-110f;
  const std::uint32_t exponent = doubled & 0xff000000u;
  const std::uint32_t bias = exponent < 0x71000000u ? 0x71000000u : exponent;
  const auto rounded = __builtin_bit_cast(
      std::uint32_t, __builtin_bit_cast(float, (bias >> 1) + 0x07800000u) + base);
  const std::uint32_t number = ((rounded >> 13) & 0x7c00u) + (rounded & 0x0fffu);
  return {static_cast<std::uint16_t>(sign | (doubled > 0xff000000u ? 0x7e00u : number))};
}

}  // namespace
}  // namespace tessera::comm
