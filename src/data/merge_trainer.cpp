// SPDX-License-Identifier: Apache-2.0
#include "merge_trainer.hpp"

#include <algorithm>

namespace tessera::data {

void MergeTrainer::add_word(std::vector<std::int32_t> ids, std::int64_t occurrences) {
  if (ids.size() > 1) words_.push_back({std::move(ids), occurrences});
}

void MergeTrainer::change(Pair pair, std::int64_t by, std::uint32_t word) {
  PairState& state = pairs_[pair];
  state.count += by;
  if (by <= 0) return;
  if (state.words.empty() || state.words.back() != word) state.words.push_back(word);
  grown_.push_back(pair);
}

void MergeTrainer::count_pairs() {
  for (std::uint32_t number = 0; number < words_.size(); ++number) {
    const auto& [ids, occurrences] = words_[number];
    for (std::size_t i = 0; i + 1 < ids.size(); ++i)
      change({ids[i], ids[i + 1]}, occurrences, number);
  }
  grown_.clear();
  for (const auto& [pair, state] : pairs_) candidates_.push({state.count, pair});
}

std::pair<MergeTrainer::Pair, std::int64_t> MergeTrainer::best_pair() {
  while (!candidates_.empty()) {
    const Candidate best = candidates_.top();
    const auto found = pairs_.find(best.pair);
    const std::int64_t count = found == pairs_.end() ? 0 : found->second.count;
    if (count == best.count && count > 0) return {best.pair, count};
    candidates_.pop();
    if (count > 0 && count < best.count) candidates_.push({count, best.pair});
  }
  return {{}, 0};
}

void MergeTrainer::merge(Pair pair, std::int32_t merged) {
  std::vector<std::uint32_t> holders = std::move(pairs_.at(pair).words);
  std::sort(holders.begin(), holders.end());
  holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  for (const std::uint32_t number : holders) merge_in_word(number, pair, merged);
  pairs_.erase(pair);
  std::sort(grown_.begin(), grown_.end());
  grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
  for (const Pair& grown : grown_) {
    if (const auto found = pairs_.find(grown); found != pairs_.end())
      candidates_.push({found->second.count, grown});
  }
  grown_.clear();
}

void MergeTrainer::merge_in_word(std::uint32_t number, Pair pair, std::int32_t merged) {
  auto& [ids, occurrences] = words_[number];
  std::size_t out = 0;
  for (std::size_t in = 0; in < ids.size(); ++out) {
    const bool here = in + 1 < ids.size() && ids[in] == pair.first && ids[in + 1] == pair.second;
    if (!here) {
      ids[out] = ids[in++];
      continue;
    }
    in += 2;
    if (out > 0) {
      change({ids[out - 1], pair.first}, -occurrences, number);
      change({ids[out - 1], merged}, occurrences, number);
    }
    if (in < ids.size()) {
      change({pair.second, ids[in]}, -occurrences, number);
      change({merged, ids[in]}, occurrences, number);
    }
    ids[out] = merged;
  }
  ids.resize(out);
}

}  // namespace tessera::data
