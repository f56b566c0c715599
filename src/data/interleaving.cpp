// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/interleaving.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "content_hash.hpp"
#include "tessera/base/error.hpp"

namespace tessera::data {
namespace {

/// Weights in units of 2^-40 of their sum; a source of less than one unit has one.
std::vector<std::int64_t> whole_weights(std::span<const double> weights) {
  const double most = *std::ranges::max_element(weights);
  const double sum =
      std::accumulate(weights.begin(), weights.end(), 0.0, [most](double total, double weight) {
        return total + weight / most;  // of ratios, which do not overflow
      });
  std::vector<std::int64_t> whole;
  for (const double weight : weights)
    whole.push_back(std::max<std::int64_t>(1, std::llround(weight / most / sum * 0x1p40)));
  return whole;
}

}  // namespace

Interleaving Interleaving::of_shares(std::span<const double> weights, std::uint64_t seed) {
  for (const double weight : weights)
    TESSERA_EXPECT(std::isfinite(weight) && weight > 0, "a source of weight {}", weight);
  TESSERA_EXPECT(!weights.empty(), "no source");
  return Interleaving(whole_weights(weights), &seed);
}

Interleaving Interleaving::of_counts(std::span<const std::int64_t> counts) {
  TESSERA_EXPECT(!counts.empty() && *std::ranges::min_element(counts) >= 1, "a source of nothing");
  return Interleaving(counts, nullptr);
}

Interleaving::Interleaving(std::span<const std::int64_t> weights, const std::uint64_t* seed)
    : sources_(weights.size()) {
  fork(weights, 0, weights.size(), seed);
}

/// The number of the fork of sources [begin, end), or -1 for a single one. Parents come before
/// their children.
int Interleaving::fork(std::span<const std::int64_t> weights, std::size_t begin, std::size_t end,
                       const std::uint64_t* seed) {
  if (end - begin == 1) return -1;
  const auto sum = [&](std::size_t from, std::size_t to) {
    return std::reduce(weights.begin() + static_cast<std::ptrdiff_t>(from),
                       weights.begin() + static_cast<std::ptrdiff_t>(to), std::int64_t{0});
  };
  Fork made{begin, begin + (end - begin) / 2, end, 0, sum(begin, end), 0};
  made.first = sum(begin, made.middle);
  if (seed)
    made.phase =
        static_cast<std::int64_t>(content_hash(fmt::format("mixture {} {} {}", *seed, begin, end)) %
                                  static_cast<std::uint64_t>(made.all));
  const std::size_t number = forks_.size();
  forks_.push_back(made);
  const int left = fork(weights, begin, made.middle, seed),
            right = fork(weights, made.middle, end, seed);
  forks_[number].left = left;
  forks_[number].right = right;
  return static_cast<int>(number);
}

std::int64_t Interleaving::Fork::before(std::int64_t n) const {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>((static_cast<Wide>(n) * first + phase) / all);
}

Interleaving::Place Interleaving::at(std::int64_t n) const {
  TESSERA_EXPECT(n >= 0, "number {}", n);
  if (forks_.empty()) return {0, n};
  for (int next = 0;;) {
    const Fork& f = forks_[static_cast<std::size_t>(next)];
    const std::int64_t before = f.before(n);
    const bool first = f.before(n + 1) > before;
    n = first ? before : n - before;
    next = first ? f.left : f.right;
    if (next < 0) return {first ? f.begin : f.middle, n};
  }
}

std::vector<std::int64_t> Interleaving::counts(std::int64_t n) const {
  std::vector<std::int64_t> counts(sources_, n);
  if (!forks_.empty()) count(0, n, counts);
  return counts;
}

void Interleaving::count(int fork, std::int64_t n, std::vector<std::int64_t>& counts) const {
  const Fork& f = forks_[static_cast<std::size_t>(fork)];
  const std::int64_t first = f.before(n);
  f.left < 0 ? void(counts[f.begin] = first) : count(f.left, first, counts);
  f.right < 0 ? void(counts[f.middle] = n - first) : count(f.right, n - first, counts);
}

}  // namespace tessera::data
