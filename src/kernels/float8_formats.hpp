// SPDX-License-Identifier: Apache-2.0
// The 8-bit numbers of https://arxiv.org/abs/2209.05433, bit by bit, for host and device.
#pragma once

#include "numbers.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// All bits if a < b, of numbers whose difference does not overflow. With comparisons, GCC makes
/// branches and no vector instructions.
TESSERA_HD std::uint32_t below(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint32_t>((a - b) >> 31);
}
TESSERA_HD std::uint32_t choose(std::uint32_t mask, std::uint32_t yes, std::uint32_t no) {
  return (yes & mask) | (no & ~mask);
}

inline constexpr std::int32_t kInfinity =
    0x7f800000;  ///< bits of float32; a NaN's magnitude is above
inline constexpr std::uint32_t kNan = 0x7fc00000u;

/// An 8-bit format: `Mantissa` explicit bits, `Bias` of the exponent, the largest number, and
/// whether it has infinities.
template <int Mantissa, int Bias, int Largest, bool Infinities>
struct Format {
  static constexpr float largest = Largest;

  TESSERA_HD static std::uint8_t byte_of(float v) {
    constexpr int kDropped = 23 - Mantissa;
    // A float whose last place is the format's smallest number, so that adding it rounds.
    constexpr auto kMagic = static_cast<std::uint32_t>(127 + kDropped - Bias + 1) << 23;
    const auto bits = bits_as<std::uint32_t>(v);
    const auto magnitude = static_cast<std::int32_t>(bits & 0x7fffffffu);
    const auto kLargest = bits_as<std::int32_t>(static_cast<float>(Largest));
    const std::uint32_t number =
        choose(below(kLargest, magnitude), kLargest, static_cast<std::uint32_t>(magnitude));
    const auto cut = static_cast<std::int32_t>(number);
    const std::uint32_t tie = (number >> kDropped) & 1u;
    const std::uint32_t normal = ((number + (1u << (kDropped - 1)) - 1u + tie) >> kDropped) -
                                 (static_cast<std::uint32_t>(127 - Bias) << Mantissa);
    const std::uint32_t tiny =
        bits_as<std::uint32_t>(bits_as<float>(number) + bits_as<float>(kMagic)) - kMagic;
    const std::uint32_t code = choose(below(kInfinity, magnitude), 0x7fu,
                                      choose(below(cut, (128 - Bias) << 23), tiny, normal));
    return static_cast<std::uint8_t>(code | ((bits >> 24) & 0x80u));
  }

  TESSERA_HD static float value_of(std::uint8_t byte) {
    constexpr float kSmallest = 1.0F / (1 << (Bias + Mantissa - 1));
    constexpr std::int32_t kFirstSpecial = Infinities ? 0x7c : 0x7f;
    const std::int32_t code = byte & 0x7f;
    const auto normal =
        static_cast<std::uint32_t>((code << (23 - Mantissa)) + ((127 - Bias) << 23));
    const auto tiny = bits_as<std::uint32_t>(static_cast<float>(code) * kSmallest);
    const std::uint32_t special =
        Infinities ? choose(below(kFirstSpecial, code), kNan, kInfinity) : kNan;
    const std::uint32_t size = choose(below(code, kFirstSpecial),
                                      choose(below(code, 1 << Mantissa), tiny, normal), special);
    return bits_as<float>(size | (static_cast<std::uint32_t>(byte & 0x80u) << 24));
  }
};

using E4m3 = Format<3, 7, 448, false>;
using E5m2 = Format<2, 15, 57344, true>;

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
