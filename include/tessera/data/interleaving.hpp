// SPDX-License-Identifier: Apache-2.0
// Which of several sources a number belongs to, in fixed shares and without state.
//
// Two sources with integer weights a and b, and a phase 0 <= f < a + b: of the first n numbers the
// first source has c(n) = floor((n a + f) / (a + b)), so number n is its c(n)-th if c(n + 1) >
// c(n), else number n - c(n) of the other. This is the digital line (Bresenham, IBM Systems Journal
// 4, 1965; Beatty's sequences): every count is within 1 of its share, wherever the counting begins.
// More sources are halves of halves, so that choosing takes log2 of their number.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::data {

class Interleaving {
 public:
  /// Shares are weights (each above 0, finite) over their sum, in steps of 2^-40; the phases are
  /// drawn from `seed`.
  static Interleaving of_shares(std::span<const double> weights, std::uint64_t seed);
  /// Of each run of sum(counts) numbers, from 0 on, source i has exactly counts[i] (each >= 1).
  static Interleaving of_counts(std::span<const std::int64_t> counts);

  /// Number `index` among those of `source`.
  struct Place {
    std::size_t source = 0;
    std::int64_t index = 0;
    bool operator==(const Place&) const = default;
  };
  /// Whose number `n` >= 0 is.
  Place at(std::int64_t n) const;
  /// How many of the numbers below `n` each source has. Each differs from its share of n by less
  /// than ceil(log2(sources)).
  std::vector<std::int64_t> counts(std::int64_t n) const;
  std::size_t sources() const { return sources_; }

 private:
  /// Sources [begin, end), of which those below `middle` are the first half.
  struct Fork {
    std::size_t begin, middle, end;
    std::int64_t first, all;  ///< weight of the first half, of both
    std::int64_t phase;
    int left = -1, right = -1;  ///< forks of the halves; -1 = a half is one source
    std::int64_t before(std::int64_t n) const;
  };
  Interleaving(std::span<const std::int64_t> weights, const std::uint64_t* seed);
  int fork(std::span<const std::int64_t> weights, std::size_t begin, std::size_t end,
           const std::uint64_t* seed);
  void count(int fork, std::int64_t n, std::vector<std::int64_t>& counts) const;

  std::size_t sources_;
  std::vector<Fork> forks_;
};

}  // namespace tessera::data
