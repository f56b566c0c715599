// SPDX-License-Identifier: Apache-2.0
#include "load/cover.hpp"

#include <random>

#include "tessera/base/mixed_bits.hpp"

namespace tessera::checkpoint {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

/// 128 random bits, drawn once in each process.
struct Key {
  std::uint64_t dims, positions;
};
const Key& key() {
  static const Key key = [] {
    std::random_device random;
    const auto word = [&] { return (std::uint64_t{random()} << 32) | random(); };
    return Key{word(), word()};
  }();
  return key;
}

std::uint64_t number_at(std::size_t dim, std::int64_t position) {
  const std::uint64_t of_dim = mixed_bits(key().dims + 0x9e3779b97f4a7c15u * (dim + 1));
  return mixed_bits(of_dim ^
                    mixed_bits(key().positions +
                               0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(position))) %
         kPrime;
}

std::uint64_t fingerprint(const Box& box) {
  std::uint64_t product = 1;
  for (std::size_t d = 0; d < box.offset.size(); ++d) {
    const std::uint64_t begin = number_at(d, box.offset[d]),
                        end = number_at(d, box.offset[d] + box.extent[d]);
    product = static_cast<std::uint64_t>(Wide{product} * (end + kPrime - begin) % kPrime);
  }
  return product;
}

}  // namespace

void Cover::add(const Box& part) {
  elements_ += element_count(part.extent);
  sum_ = (sum_ + fingerprint(part)) % kPrime;
}

bool Cover::makes_up(const Box& whole) const {
  return elements_ == element_count(whole.extent) && (elements_ == 0 || sum_ == fingerprint(whole));
}

}  // namespace tessera::checkpoint
