// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/tokenizer.hpp"

#include "byte_alphabet.hpp"
#include "nfc.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/utf8.hpp"
#include "tokenizer_parts.hpp"

namespace tessera::data {

void Tokenizer::Parts::walk(std::string_view text, const WordSink& word,
                            const TokenSink& token) const {
  raw_tokens.split(text, [&](std::string_view piece, std::optional<std::int32_t> id) {
    id ? token(piece, *id) : walk_bytes(piece, word, token);
  });
}

void Tokenizer::Parts::walk_bytes(std::string_view text, const WordSink& word,
                                  const TokenSink& token) const {
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0) walk_utf8(text.substr(0, valid), word, token);
    text.remove_prefix(valid);
    if (text.empty()) break;
    word(text.substr(0, 1));
    text.remove_prefix(1);
  }
}

void Tokenizer::Parts::walk_utf8(std::string_view text, const WordSink& word,
                                 const TokenSink& token) const {
  const bool changes = nfc && !is_plainly_nfc(text);
  const std::string normalized = changes ? to_nfc(text) : std::string();
  normalized_tokens.split(changes ? normalized : text,
                          [&](std::string_view piece, std::optional<std::int32_t> id) {
                            id ? token(piece, *id) : pre_tokenizer.split(piece, word);
                          });
}

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  WordCachePool::Lease cache(parts_->caches);
  const auto encode_word = [&](std::string_view word) {
    if ((*cache).append(word, ids)) return;
    const std::size_t begin = ids.size();
    const auto whole = parts_->whole_words.find(word);
    if (whole != parts_->whole_words.end()) {
      ids.push_back(whole->second);
    } else {
      parts_->bpe.encode(word, ids);
    }
    (*cache).put(word, std::span(ids).subspan(begin));
  };
  parts_->walk(text, encode_word, [&](std::string_view, std::int32_t id) { ids.push_back(id); });
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string text;
  for (const std::int32_t id : ids) {
    require(
        has(id), ExitCode::data,
        "id {} is not in the tokenizer's vocabulary of {}; decode with the tokenizer that made it",
        id, vocab_size());
    if (!skip_special || parts_->kinds[id] != Parts::Kind::special) text += parts_->bytes[id];
  }
  return text;
}

bool Tokenizer::has(std::int32_t id) const {
  return id >= 0 && id < vocab_size() && parts_->kinds[id] != Parts::Kind::absent;
}

std::vector<std::string> Tokenizer::pre_tokens(std::string_view text) const {
  std::vector<std::string> words;
  parts_->walk_bytes(
      text, [&](std::string_view word) { words.push_back(to_byte_alphabet(word)); },
      [&](std::string_view token, std::int32_t) { words.emplace_back(token); });
  return words;
}

std::optional<int> Tokenizer::id_of(std::string_view token) const {
  const auto found = parts_->ids.find(token);
  return found == parts_->ids.end() ? std::nullopt : std::optional<int>(found->second);
}

int Tokenizer::vocab_size() const { return static_cast<int>(parts_->bytes.size()); }
std::optional<int> Tokenizer::bos_id() const { return parts_->bos_id; }
std::optional<int> Tokenizer::eos_id() const { return parts_->eos_id; }
std::uint64_t Tokenizer::content_hash() const { return parts_->content_hash; }

}  // namespace tessera::data
