// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace tessera {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080u;

std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

std::size_t length_from_lead(std::uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
}

std::size_t ascii_prefix(std::string_view text) {
  std::size_t i = 0;
  for (std::uint64_t word; i + 8 <= text.size(); i += 8) {
    std::memcpy(&word, text.data() + i, 8);
    if (word & kHighBits) break;
  }
  while (i < text.size() && byte_at(text, i) < 0x80) ++i;
  return i;
}

bool is_surrogate(char32_t code) { return code >= 0xD800 && code < 0xE000; }

}  // namespace

CodePoint first_code_point(std::string_view text) noexcept {
  if (text.empty()) return {};
  const std::uint8_t lead = byte_at(text, 0);
  const std::size_t bytes = length_from_lead(lead);
  if (bytes == 0 || bytes > text.size()) return {};
  if (bytes == 1) return {lead, 1};
  char32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte_at(text, i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return code < kSmallest[bytes] || code > 0x10FFFF || is_surrogate(code) ? CodePoint{}
                                                                          : CodePoint{code, bytes};
}

CodePoint last_code_point(std::string_view text) noexcept {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(4, text.size()); ++bytes) {
    const CodePoint code = first_code_point(text.substr(text.size() - bytes));
    if (code.bytes == bytes) return code;
  }
  return {};
}

std::string_view without_byte_order_mark(std::string_view text) noexcept {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

std::size_t valid_utf8_prefix(std::string_view text) noexcept {
  std::size_t i = 0;
  while (true) {
    i += ascii_prefix(text.substr(i));
    const CodePoint code = first_code_point(text.substr(i));
    if (code.bytes == 0) return i;
    i += code.bytes;
  }
}

std::string with_whole_characters(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t whole = valid_utf8_prefix(text);
    out += text.substr(0, whole);
    text.remove_prefix(whole);
    if (text.empty()) return out;
    append_utf8(out, 0xFFFD);
    const std::size_t most = std::max<std::size_t>(1, length_from_lead(byte_at(text, 0)));
    std::size_t bytes = 1;
    while (bytes < most && bytes < text.size() && (byte_at(text, bytes) & 0xC0) == 0x80) ++bytes;
    text.remove_prefix(bytes);
  }
}

void append_utf8(std::string& out, char32_t code) {
  const auto push = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto tail = [&](int shift) { push(0x80 | (code >> shift & 0x3F)); };
  if (code > 0x10FFFF || is_surrogate(code)) code = 0xFFFD;
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xC0 | code >> 6), tail(0);
  } else if (code < 0x10000) {
    push(0xE0 | code >> 12), tail(6), tail(0);
  } else {
    push(0xF0 | code >> 18), tail(12), tail(6), tail(0);
  }
}

bool is_white_space(char32_t code) noexcept {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

}  // namespace tessera
