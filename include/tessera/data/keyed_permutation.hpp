// SPDX-License-Identifier: Apache-2.0
// A bijection of [0, size) chosen by a key, computed in O(1) and with no table: a Feistel network
// over the smallest even number of bits that holds `size`, and cycle walking back into the range
// (Black and Rogaway, CT-RSA 2002).
#pragma once

#include <cstdint>

namespace tessera::data {

class KeyedPermutation {
 public:
  /// `size` >= 1. Equal (size, seed, stream) give equal bijections on every machine.
  KeyedPermutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream = 0);
  /// Image of `index`, 0 <= index < size(). Takes fewer than four walks of six rounds on average.
  std::int64_t operator()(std::int64_t index) const;
  std::int64_t size() const { return static_cast<std::int64_t>(size_); }

 private:
  std::uint64_t encrypt(std::uint64_t value) const;

  static constexpr int kRounds = 6;
  std::uint64_t size_;
  int half_bits_;
  std::uint64_t keys_[kRounds];
};

}  // namespace tessera::data
