// SPDX-License-Identifier: Apache-2.0
// GPT-2's alphabet: each byte has a printable character, and tokens in files are written in these
// (a space is "Ġ").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::data {

/// UTF-8 of the character of each byte.
const std::array<std::string, 256>& byte_alphabet();
/// Bytes in the order of their characters' code points: the ids that trained vocabularies give
/// them.
const std::array<std::uint8_t, 256>& bytes_by_character();
std::string to_byte_alphabet(std::string_view bytes);
/// Bytes that `characters` stand for; empty when one of them is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view characters);

}  // namespace tessera::data
