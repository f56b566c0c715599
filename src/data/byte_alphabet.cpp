// SPDX-License-Identifier: Apache-2.0
#include "byte_alphabet.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/base/utf8.hpp"

namespace tessera::data {
namespace {

// 256 + the 68 bytes that have no printable Latin-1 character of their own
constexpr int kAlphabetEnd = 0x144;

bool is_printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

/// Code point of each byte: itself where that is printable, else 256, 257, ... in order.
constexpr auto kUnused = -1;
const std::array<char32_t, 256>& code_points() {
  static const auto table = [] {
    std::array<char32_t, 256> made{};
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte)
      made[byte] = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
    return made;
  }();
  return table;
}

const std::array<std::int16_t, kAlphabetEnd>& bytes_of_code_points() {
  static const auto table = [] {
    std::array<std::int16_t, kAlphabetEnd> made;
    made.fill(kUnused);
    for (int byte = 0; byte < 256; ++byte)
      made[code_points()[byte]] = static_cast<std::int16_t>(byte);
    return made;
  }();
  return table;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
  static const auto table = [] {
    std::array<std::string, 256> made;
    for (int byte = 0; byte < 256; ++byte) append_utf8(made[byte], code_points()[byte]);
    return made;
  }();
  return table;
}

const std::array<std::uint8_t, 256>& bytes_by_character() {
  static const auto table = [] {
    std::array<std::uint8_t, 256> made;
    std::iota(made.begin(), made.end(), std::uint8_t{0});
    std::sort(made.begin(), made.end(),
              [](auto a, auto b) { return code_points()[a] < code_points()[b]; });
    return made;
  }();
  return table;
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += byte_alphabet()[static_cast<std::uint8_t>(byte)];
  return out;
}

std::optional<std::string> from_byte_alphabet(std::string_view characters) {
  std::string out;
  while (!characters.empty()) {
    const CodePoint code = first_code_point(characters);
    const int byte =
        code.bytes != 0 && code.value < kAlphabetEnd ? bytes_of_code_points()[code.value] : kUnused;
    if (byte == kUnused) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    characters.remove_prefix(code.bytes);
  }
  return out;
}

}  // namespace tessera::data
