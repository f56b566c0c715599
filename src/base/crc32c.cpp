// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78u;
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    t[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      t[k][byte] = (t[k - 1][byte] >> 8) ^ t[0][t[k - 1][byte] & 0xff];
  return t;
}

constexpr Tables kTables = make_tables();

std::uint64_t load64(const unsigned char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

#if defined(__x86_64__)

/// a * b modulo the polynomial; bit 31 is x^0, as everywhere in a reflected CRC.
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? kPolynomial : 0);
  }
  return product;
}

/// x^(8 * bytes): the factor by which a checksum moves over that many bytes of zeros.
constexpr std::uint32_t power_of_bytes(std::size_t bytes) {
  std::uint32_t result = 0x80000000u, base = 0x00800000u;
  for (; bytes != 0; bytes >>= 1) {
    if (bytes & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

/// Moves a checksum over `Bytes` bytes of zeros with four look-ups.
template <std::size_t Bytes>
struct Shift {
  static constexpr std::array<std::array<std::uint32_t, 256>, 4> make() {
    std::array<std::array<std::uint32_t, 256>, 4> t{};
    constexpr std::uint32_t factor = power_of_bytes(Bytes);
    for (std::uint32_t k = 0; k < 4; ++k)
      for (std::uint32_t byte = 0; byte < 256; ++byte)
        t[k][byte] = multiply(byte << (8 * k), factor);
    return t;
  }
  static constexpr auto kTable = make();
  static std::uint32_t apply(std::uint32_t crc) {
    return kTable[0][crc & 0xff] ^ kTable[1][(crc >> 8) & 0xff] ^ kTable[2][(crc >> 16) & 0xff] ^
           kTable[3][crc >> 24];
  }
};

/// Three streams of `Bytes` bytes each hide the instruction's latency of three cycles.
template <std::size_t Bytes>
__attribute__((target("sse4.2"))) const unsigned char* three_streams(std::uint32_t& crc,
                                                                     const unsigned char* p,
                                                                     std::size_t& bytes) {
  for (; bytes >= 3 * Bytes; bytes -= 3 * Bytes, p += 3 * Bytes) {
    std::uint64_t a = crc, b = 0, c = 0;
    for (std::size_t i = 0; i < Bytes; i += 8) {
      a = _mm_crc32_u64(a, load64(p + i));
      b = _mm_crc32_u64(b, load64(p + Bytes + i));
      c = _mm_crc32_u64(c, load64(p + 2 * Bytes + i));
    }
    crc = Shift<Bytes>::apply(static_cast<std::uint32_t>(a)) ^ static_cast<std::uint32_t>(b);
    crc = Shift<Bytes>::apply(crc) ^ static_cast<std::uint32_t>(c);
  }
  return p;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::uint32_t crc, const void* data,
                                                             std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  p = three_streams<8192>(crc, p, bytes);
  p = three_streams<256>(crc, p, bytes);
  for (; bytes >= 8; bytes -= 8, p += 8)
    crc = static_cast<std::uint32_t>(_mm_crc32_u64(crc, load64(p)));
  for (; bytes != 0; --bytes, ++p) crc = _mm_crc32_u8(crc, *p);
  return ~crc;
}

#endif

}  // namespace

std::uint32_t crc32c_portable(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; bytes >= 8 && std::endian::native == std::endian::little; bytes -= 8, p += 8) {
    const std::uint64_t word = load64(p) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; bytes != 0; --bytes, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_sse42(crc, data, bytes);
#endif
  return crc32c_portable(crc, data, bytes);
}

}  // namespace tessera
