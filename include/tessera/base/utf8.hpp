// SPDX-License-Identifier: Apache-2.0
// UTF-8, strictly: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  ///< 0: the text does not begin with a character
};

/// The character at the beginning of `text`.
CodePoint first_code_point(std::string_view text) noexcept;
/// The character at the end of `text`.
CodePoint last_code_point(std::string_view text) noexcept;
/// Without the byte order mark that some programs begin files with.
std::string_view without_byte_order_mark(std::string_view text) noexcept;
/// Bytes at the beginning of `text` that are whole characters.
std::size_t valid_utf8_prefix(std::string_view text) noexcept;
/// `text` with U+FFFD in place of what is not a character. The beginning of a character is replaced
/// as a whole.
std::string with_whole_characters(std::string_view text);
/// Appends U+FFFD for a code that is no character.
void append_utf8(std::string& out, char32_t code);
/// Unicode property White_Space: what \s matches in Hugging Face's patterns.
bool is_white_space(char32_t code) noexcept;

}  // namespace tessera
