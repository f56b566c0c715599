// SPDX-License-Identifier: Apache-2.0
// What a loaded tokenizer is made of; the loader fills it, encode and decode read it.
#pragma once

#include <functional>

#include "added_tokens.hpp"
#include "bpe.hpp"
#include "pre_tokenizer.hpp"
#include "tessera/data/tokenizer.hpp"
#include "word_cache.hpp"

namespace tessera::data {

struct Tokenizer::Parts {
  enum class Kind : std::uint8_t { absent, ordinary, special };

  BpeModel bpe;
  PreTokenizer pre_tokenizer;
  AddedTokenFinder raw_tokens;         ///< looked for in the text as it is
  AddedTokenFinder normalized_tokens;  ///< looked for after normalisation
  bool nfc = false;
  StringMap<std::int32_t> ids;  ///< by text, as the file spells it
  /// by bytes; words that are tokens need no merges (ignore_merges)
  StringMap<std::int32_t> whole_words;
  std::vector<std::string> bytes;  ///< by id
  std::vector<Kind> kinds;         ///< by id
  std::optional<int> bos_id, eos_id;
  std::uint64_t content_hash = 0;
  mutable WordCachePool caches;

  using WordSink = std::function<void(std::string_view)>;
  using TokenSink = std::function<void(std::string_view, std::int32_t)>;
  /// Calls `word` with each word and `token` with each added token, in order.
  void walk(std::string_view text, const WordSink& word, const TokenSink& token) const;
  /// The same for text in which raw_tokens are not looked for.
  void walk_bytes(std::string_view text, const WordSink& word, const TokenSink& token) const;

 private:
  void walk_utf8(std::string_view text, const WordSink& word, const TokenSink& token) const;
};

}  // namespace tessera::data
