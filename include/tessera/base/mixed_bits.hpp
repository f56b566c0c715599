// SPDX-License-Identifier: Apache-2.0
// A hash of 64 bits.
#pragma once

#include <cstdint>

namespace tessera {

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195): every bit
/// of the input changes half of the output.
constexpr std::uint64_t mixed_bits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace tessera
