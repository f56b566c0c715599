// SPDX-License-Identifier: Apache-2.0
// The long fixed-point number of ExactSum: digits of 32 bits in 64-bit words, least significant
// first.
#pragma once

#include <cstdint>

#include "host_device.hpp"

namespace tessera::kernels::fixed_point {

inline constexpr int word_count = 69;
inline constexpr int digit_count = word_count - 1;  ///< the last word counts what was not finite
inline constexpr int lowest_exponent = -1088;       ///< of the first digit's lowest bit

/// value = +-mantissa * 2^(exponent - 1075): deposit(word, amount) for each of the three digits
/// that its bits straddle.
template <class Deposit>
TESSERA_HD void add(double value, const Deposit& deposit) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    deposit(word_count - 1, std::int64_t{1});
    return;
  }
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  const int position = (exponent == 0 ? 1 : exponent) - 1075 - lowest_exponent,
            shift = position % 32;
  const std::uint64_t low = mantissa << shift, high = shift == 0 ? 0 : mantissa >> (64 - shift);
  const std::int64_t sign = bits >> 63 != 0 ? -1 : 1;
  deposit(position / 32, sign * static_cast<std::int64_t>(low & 0xffffffffu));
  deposit(position / 32 + 1, sign * static_cast<std::int64_t>(low >> 32));
  deposit(position / 32 + 2, sign * static_cast<std::int64_t>(high));
}

/// Brings every digit but the highest, which keeps the sign, into [0, 2^32).
TESSERA_HD void carry(std::int64_t* words) {
  for (int i = 0; i + 1 < digit_count; ++i) {
    const std::int64_t over = words[i] >> 32;
    words[i] -= over * (std::int64_t{1} << 32);
    words[i + 1] += over;
  }
}

/// Word `i` of the same number after each digit gave what is above 32 bits to the next one, all at
/// once: below 2^33 + 2^31 in magnitude, but for the highest.
TESSERA_HD std::int64_t carried_once(const std::int64_t* words, int i) {
  const bool gives = i + 1 < digit_count, takes = i > 0 && i < digit_count;
  const std::int64_t own = gives ? words[i] & 0xffffffff : words[i];
  return takes ? own + (words[i - 1] >> 32) : own;
}

}  // namespace tessera::kernels::fixed_point
