// SPDX-License-Identifier: Apache-2.0
// Remembers the ids of words: text repeats its words, and merging is the slow part of encoding.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bpe.hpp"

namespace tessera::data {

class WordCache {
 public:
  /// Appends the ids of `word` and returns true, or returns false when they are not known.
  bool append(std::string_view word, std::vector<std::int32_t>& ids) const;
  /// Forgets everything first when it is full.
  void put(std::string_view word, std::span<const std::int32_t> ids);

 private:
  static constexpr std::size_t kMaxWords = std::size_t{1} << 17;
  static constexpr std::size_t kMaxWordBytes = 64;
  struct Place {
    std::uint32_t begin, count;
  };
  StringMap<Place> places_;
  std::vector<std::int32_t> ids_;
};

/// Caches for as many threads as encode at once; each is lent to one of them for the time of a
/// call.
class WordCachePool {
 public:
  class Lease {
   public:
    explicit Lease(WordCachePool& pool) : pool_(pool), cache_(pool.take()) {}
    ~Lease() { pool_.give_back(std::move(cache_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    WordCache& operator*() { return *cache_; }

   private:
    WordCachePool& pool_;
    std::unique_ptr<WordCache> cache_;
  };

 private:
  std::unique_ptr<WordCache> take();
  void give_back(std::unique_ptr<WordCache> cache);
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCache>> idle_;
};

}  // namespace tessera::data
