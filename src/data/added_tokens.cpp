// SPDX-License-Identifier: Apache-2.0
#include "added_tokens.hpp"

#include <algorithm>

#include "regex.hpp"
#include "tessera/base/utf8.hpp"
#include "unicode_tables.hpp"

namespace tessera::data {
namespace {

/// \w of Rust's regular expressions, which are asked here and nowhere else.
bool is_word_character(std::string_view character) {
  static const Regex word = Regex::compile(R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d})" +
                                           std::string(other_word()) + "]");
  return !character.empty() && word.matches_somewhere(character);
}

bool touches_a_word(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view before = text.substr(0, begin), after = text.substr(end);
  return is_word_character(before.substr(before.size() - last_code_point(before).bytes)) ||
         is_word_character(after.substr(0, first_code_point(after).bytes));
}

std::size_t before_white_space(std::string_view text, std::size_t end, std::size_t least) {
  while (end > least) {
    const CodePoint code = last_code_point(text.substr(least, end - least));
    if (code.bytes == 0 || !is_white_space(code.value)) break;
    end -= code.bytes;
  }
  return end;
}

std::size_t after_white_space(std::string_view text, std::size_t begin) {
  while (true) {
    const CodePoint code = first_code_point(text.substr(begin));
    if (code.bytes == 0 || !is_white_space(code.value)) return begin;
    begin += code.bytes;
  }
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token) {
  if (token.content.empty() || !index_.emplace(token.content, tokens_.size()).second) return;
  tokens_.push_back(token);
  auto& lengths = lengths_by_first_byte_[static_cast<std::uint8_t>(token.content[0])];
  const auto place =
      std::lower_bound(lengths.begin(), lengths.end(), token.content.size(), std::greater<>());
  if (place == lengths.end() || *place != token.content.size())
    lengths.insert(place, token.content.size());
}

const AddedToken* AddedTokenFinder::token_at(std::string_view text, std::size_t at) const {
  for (const std::size_t length : lengths_by_first_byte_[static_cast<std::uint8_t>(text[at])]) {
    const auto found =
        length <= text.size() - at ? index_.find(text.substr(at, length)) : index_.end();
    if (found != index_.end()) return &tokens_[found->second];
  }
  return nullptr;
}

void AddedTokenFinder::split(
    std::string_view text,
    const std::function<void(std::string_view, std::optional<std::int32_t>)>& sink) const {
  std::size_t done = 0;
  for (std::size_t at = 0; !tokens_.empty() && at < text.size();) {
    const AddedToken* token = token_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->single_word && touches_a_word(text, begin, end)) continue;
    if (token->lstrip) begin = before_white_space(text, begin, done);
    if (token->rstrip) at = end = after_white_space(text, end);
    if (begin > done) sink(text.substr(done, begin - done), std::nullopt);
    sink(text.substr(begin, end - begin), token->id);
    done = end;
  }
  if (done < text.size()) sink(text.substr(done), std::nullopt);
}

}  // namespace tessera::data
