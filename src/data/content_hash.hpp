// SPDX-License-Identifier: Apache-2.0
// A 64-bit hash of bytes against accidents (not against attackers): 8 bytes a step, folded 128-bit
// multiplication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tessera::data {

class ContentHash {
 public:
  /// The same bytes in other portions give the same hash.
  void update(const void* data, std::size_t bytes) noexcept {
    const auto* at = static_cast<const unsigned char*>(data);
    total_ += bytes;
    for (; bytes > 0 && held_ > 0; --bytes) hold(*at++);
    for (std::uint64_t word; bytes >= 8; at += 8, bytes -= 8) {
      std::memcpy(&word, at, 8);
      step(word);
    }
    for (; bytes > 0; --bytes) hold(*at++);
  }
  void update(std::string_view text) noexcept { update(text.data(), text.size()); }

  std::uint64_t value() const noexcept { return fold(state_ ^ pending_, kKey + total_); }

 private:
  static constexpr std::uint64_t kKey = 0xA0761D6478BD642Fu;  // the constant of wyhash

  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  void step(std::uint64_t word) noexcept { state_ = fold(state_ ^ word, kKey) + word; }
  void hold(unsigned char byte) noexcept {
    pending_ |= static_cast<std::uint64_t>(byte) << (8 * held_);
    if (++held_ < 8) return;
    step(pending_);
    pending_ = 0;
    held_ = 0;
  }

  std::uint64_t state_ = 0xE7037ED1A0B428DBu;
  std::uint64_t pending_ = 0;
  std::uint64_t total_ = 0;
  int held_ = 0;
};

inline std::uint64_t content_hash(std::string_view bytes) noexcept {
  ContentHash hash;
  hash.update(bytes);
  return hash.value();
}

}  // namespace tessera::data
