// SPDX-License-Identifier: Apache-2.0
// Random bits by which numbers are rounded.
#pragma once

#include "numbers.hpp"
#include "row_types.hpp"

namespace tessera::kernels::TESSERA_ISA_NAMESPACE {

/// 64 random bits.
struct RandomBits {
  std::uint32_t low, high;
};

/// Philox2x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
/// SC11): before the first round low and high are the counter, then key grows by philox_step.
inline constexpr int philox_rounds = 10;
inline constexpr std::uint32_t philox_step = 0x9E3779B9U, philox_factor = 0xD256D193U;
TESSERA_HD void philox_round(std::uint32_t& low, std::uint32_t& high, std::uint32_t key) {
  const std::uint64_t product = std::uint64_t{philox_factor} * low;
  low = static_cast<std::uint32_t>(product >> 32) ^ key ^ high;
  high = static_cast<std::uint32_t>(product);
}

/// The random bits of the element with this number in its whole parameter.
TESSERA_HD RandomBits random_bits(const RoundingNoise& noise, std::int64_t number) {
  RandomBits bits{static_cast<std::uint32_t>(number),
                  static_cast<std::uint32_t>(number >> 32) ^ noise.high_key};
  std::uint32_t key = noise.low_key;
  for (int round = 0; round < philox_rounds; ++round, key += philox_step)
    philox_round(bits.low, bits.high, key);
  return bits;
}

}  // namespace tessera::kernels::TESSERA_ISA_NAMESPACE
