// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/keyed_permutation.hpp"

#include <algorithm>
#include <bit>

#include "tessera/base/error.hpp"
#include "tessera/base/mixed_bits.hpp"

namespace tessera::data {

KeyedPermutation::KeyedPermutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(static_cast<std::uint64_t>(size)) {
  TESSERA_EXPECT(size >= 1, "a permutation of {} things", size);
  const int bits = std::max(2, static_cast<int>(std::bit_width(size_ - 1)));
  half_bits_ = (bits + 1) / 2;
  std::uint64_t state = mixed_bits(seed + 0x9E3779B97F4A7C15u) ^
                        mixed_bits(stream + 0xD1B54A32D192ED03u) * 0x9E3779B97F4A7C15u;
  for (std::uint64_t& key : keys_) key = mixed_bits(state += 0x9E3779B97F4A7C15u);
}

std::uint64_t KeyedPermutation::encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (const std::uint64_t key : keys_) {
    left ^= mixed_bits(right + key) & mask;
    std::swap(left, right);
  }
  return left << half_bits_ | right;
}

std::int64_t KeyedPermutation::operator()(std::int64_t index) const {
  TESSERA_EXPECT(index >= 0 && index < size(), "index {} of {}", index, size());
  std::uint64_t value = static_cast<std::uint64_t>(index);
  do value = encrypt(value);
  while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace tessera::data
