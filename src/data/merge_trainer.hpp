// SPDX-License-Identifier: Apache-2.0
// The heart of BPE training: counts of neighbouring pairs, kept up to date while pairs are merged.
#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tessera::data {

/// Distinct words as sequences of ids, each with its number of occurrences.
class MergeTrainer {
 public:
  using Pair = std::pair<std::int32_t, std::int32_t>;

  void add_word(std::vector<std::int32_t> ids, std::int64_t occurrences);
  /// Counts all pairs; after the last add_word and before the first best_pair.
  void count_pairs();
  /// The most frequent pair, of equals the lowest; a count of 0 when no pair is left.
  std::pair<Pair, std::int64_t> best_pair();
  /// Replaces `pair` by `merged` in all words, left to right. O(words that hold the pair).
  void merge(Pair pair, std::int32_t merged);

 private:
  struct Word {
    std::vector<std::int32_t> ids;
    std::int64_t occurrences;
  };
  struct PairState {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  ///< those that hold it, and some that did; not unique
  };
  struct Candidate {
    std::int64_t count;
    Pair pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  struct PairHash {
    std::size_t operator()(const Pair& pair) const noexcept {
      const auto bits =
          static_cast<std::uint64_t>(pair.first) << 32 ^ static_cast<std::uint64_t>(pair.second);
      return static_cast<std::size_t>(bits * 0x9E3779B97F4A7C15u >> 16);
    }
  };

  void merge_in_word(std::uint32_t number, Pair pair, std::int32_t merged);
  void change(Pair pair, std::int64_t by, std::uint32_t word);

  std::vector<Word> words_;
  std::unordered_map<Pair, PairState, PairHash> pairs_;
  std::priority_queue<Candidate> candidates_;
  std::vector<Pair> grown_;  ///< pairs that the merge at hand made more frequent
};

}  // namespace tessera::data
