// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding of one word: merges the pair of lowest rank, leftmost first, until none is
// left.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::data {

/// Hash that lets maps of strings be asked with views.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>{}(text);
  }
};
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

class BpeModel {
 public:
  /// A byte without a token is omitted from words, as Hugging Face does when there is no unknown
  /// token.
  static constexpr std::int32_t kNoToken = -1;

  BpeModel() { byte_ids_.fill(kNoToken); }
  void set_byte(std::uint8_t byte, std::int32_t id) { byte_ids_[byte] = id; }
  std::int32_t byte_id(std::uint8_t byte) const { return byte_ids_[byte]; }
  /// The pair (left, right) becomes `merged`; a later call for the same pair replaces the earlier
  /// one.
  void set_merge(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged);
  /// Appends the ids of `word`, any bytes, in O(n log n).
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct Merge {
    std::uint32_t rank;
    std::int32_t merged;
  };
  struct PairHash {
    std::size_t operator()(std::uint64_t pair) const noexcept {
      pair *= 0x9E3779B97F4A7C15u;
      return static_cast<std::size_t>(pair ^ pair >> 32);
    }
  };
  class Word;

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  const Merge* merge_of(std::int32_t left, std::int32_t right) const;

  std::array<std::int32_t, 256> byte_ids_;
  std::unordered_map<std::uint64_t, Merge, PairHash> merges_;
};

}  // namespace tessera::data
