// SPDX-License-Identifier: Apache-2.0
// Tokens that are found in the text before anything else happens to it: special ones and those
// added after training.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bpe.hpp"

namespace tessera::data {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  ///< only where no letter, digit or _ touches it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and the white space after it
  bool normalized = false;   ///< looked for in the normalised text
  bool special = false;
};

/// Finds added tokens in text: leftmost first, of those the longest, as Hugging Face's
/// AddedVocabulary does.
class AddedTokenFinder {
 public:
  void add(const AddedToken& token);
  /// Calls `sink(text, id)` in order, with an id for a token and none for the text between (never
  /// empty).
  void split(std::string_view text,
             const std::function<void(std::string_view, std::optional<std::int32_t>)>& sink) const;

 private:
  /// Longest token that begins at text[at], if any.
  const AddedToken* token_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  StringMap<std::size_t> index_;
  std::array<std::vector<std::size_t>, 256> lengths_by_first_byte_;  ///< longest first
};

}  // namespace tessera::data
