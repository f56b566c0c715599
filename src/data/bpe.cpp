// SPDX-License-Identifier: Apache-2.0
#include "bpe.hpp"

#include <limits>
#include <queue>

#include "tessera/base/error.hpp"

namespace tessera::data {

void BpeModel::set_merge(std::int32_t left, std::int32_t right, std::uint32_t rank,
                         std::int32_t merged) {
  merges_.insert_or_assign(key(left, right), Merge{rank, merged});
}

const BpeModel::Merge* BpeModel::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

/// The tokens of a word as a linked list, and the merges that wait in order of (rank, place). A
/// merge that waits is stale once one of its tokens has changed: its two ids are no longer there.
class BpeModel::Word {
 public:
  Word(const BpeModel& model, std::string_view word) : model_(model) {
    require(word.size() < std::numeric_limits<std::int32_t>::max(), ExitCode::data,
            "a word of {} bytes is too long for the tokenizer; break the text with blanks or lines",
            word.size());
    for (const char byte : word) {
      const std::int32_t id = model.byte_id(static_cast<std::uint8_t>(byte));
      const auto at = static_cast<std::int32_t>(tokens_.size());
      if (id != kNoToken) tokens_.push_back({id, at - 1, at + 1});
    }
    for (std::int32_t at = 0; at + 1 < count(); ++at) wait(at);
  }

  void merge_all() {
    while (!waiting_.empty()) {
      const Waiting next = waiting_.top();
      waiting_.pop();
      if (is_current(next)) merge(next);
    }
  }

  void append_to(std::vector<std::int32_t>& ids) const {
    for (std::int32_t at = 0; at < count(); at = tokens_[at].next) ids.push_back(tokens_[at].id);
  }

 private:
  struct Token {
    std::int32_t id;  ///< kNoToken once merged into the token before it
    std::int32_t previous, next;
  };
  struct Waiting {
    std::uint32_t rank;
    std::int32_t at, left, right, merged;
    bool operator>(const Waiting& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  std::int32_t count() const { return static_cast<std::int32_t>(tokens_.size()); }

  void wait(std::int32_t at) {
    const std::int32_t left = tokens_[at].id, right = tokens_[tokens_[at].next].id;
    if (const Merge* merge = model_.merge_of(left, right))
      waiting_.push({merge->rank, at, left, right, merge->merged});
  }

  bool is_current(const Waiting& w) const {
    const Token& token = tokens_[w.at];
    return token.id == w.left && token.next < count() && tokens_[token.next].id == w.right;
  }

  void merge(const Waiting& w) {
    Token& token = tokens_[w.at];
    Token& eaten = tokens_[token.next];
    token.id = w.merged;
    token.next = eaten.next;
    eaten.id = kNoToken;
    if (token.next < count()) {
      tokens_[token.next].previous = w.at;
      wait(w.at);
    }
    if (token.previous >= 0) wait(token.previous);
  }

  const BpeModel& model_;
  std::vector<Token> tokens_;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

void BpeModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  Word tokens(*this, word);
  tokens.merge_all();
  tokens.append_to(ids);
}

}  // namespace tessera::data
