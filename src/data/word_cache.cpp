// SPDX-License-Identifier: Apache-2.0
#include "word_cache.hpp"

namespace tessera::data {

bool WordCache::append(std::string_view word, std::vector<std::int32_t>& ids) const {
  const auto found = places_.find(word);
  if (found == places_.end()) return false;
  const auto begin = ids_.begin() + found->second.begin;
  ids.insert(ids.end(), begin, begin + found->second.count);
  return true;
}

void WordCache::put(std::string_view word, std::span<const std::int32_t> ids) {
  if (word.size() > kMaxWordBytes) return;
  if (places_.size() == kMaxWords) {
    places_.clear();
    ids_.clear();
  }
  places_.emplace(
      word, Place{static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint32_t>(ids.size())});
  ids_.insert(ids_.end(), ids.begin(), ids.end());
}

std::unique_ptr<WordCache> WordCachePool::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<WordCache>();
  auto cache = std::move(idle_.back());
  idle_.pop_back();
  return cache;
}

void WordCachePool::give_back(std::unique_ptr<WordCache> cache) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(cache));
}

}  // namespace tessera::data
