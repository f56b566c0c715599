// SPDX-License-Identifier: Apache-2.0
// The order of several sources: shares that hold everywhere.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tessera/data/mixture_source.hpp"

namespace tessera::data {
namespace {

std::vector<double> random_weights(std::mt19937& random, std::size_t sources) {
  std::uniform_real_distribution<double> magnitude(-4, 4);
  std::vector<double> weights(sources);
  for (double& weight : weights) weight = std::pow(10, magnitude(random));
  return weights;
}

/// The slow twin: everything before a number is counted.
TEST(Interleaving, NumbersEachSourceWithoutGaps) {
  std::mt19937 random(5);
  for (std::size_t sources = 1; sources <= 9; ++sources) {
    const Interleaving mix = Interleaving::of_shares(random_weights(random, sources), sources);
    std::vector<std::int64_t> counted(sources, 0);
    for (std::int64_t n = 0; n < 3000; ++n) {
      ASSERT_EQ(mix.counts(n), counted) << n;
      const auto [source, index] = mix.at(n);
      ASSERT_LT(source, sources);
      ASSERT_EQ(index, counted[source]++) << "number " << n << " of " << sources;
    }
  }
}

/// In every window, wherever it begins, each source has its share but for a few numbers.
TEST(Interleaving, SharesHoldInEveryWindow) {
  std::mt19937 random(7);
  for (const std::size_t sources : {2u, 3u, 5u, 8u}) {
    const std::vector<double> weights = random_weights(random, sources);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const Interleaving mix = Interleaving::of_shares(weights, 11);
    const double most = std::ceil(std::log2(static_cast<double>(sources)));
    for (const std::int64_t from : {std::int64_t{0}, std::int64_t{12345}, std::int64_t{1} << 36}) {
      const auto before = mix.counts(from);
      for (const std::int64_t length : {1, 2, 7, 64, 1000, 100000}) {
        const auto after = mix.counts(from + length);
        for (std::size_t i = 0; i < sources; ++i) {
          const double error = static_cast<double>(after[i] - before[i]) -
                               weights[i] / sum * static_cast<double>(length);
          EXPECT_LT(std::abs(error), from == 0 ? most : 2 * most)
              << sources << " sources, " << length << " from " << from;
        }
      }
    }
  }
}

TEST(Interleaving, IsAFunctionOfItsSeed) {
  const std::vector<double> weights{0.7, 0.2, 0.1};
  const auto choices = [&](std::uint64_t seed) {
    const Interleaving mix = Interleaving::of_shares(weights, seed);
    std::vector<std::size_t> sources;
    for (std::int64_t n = 0; n < 200; ++n) sources.push_back(mix.at(n).source);
    return sources;
  };
  EXPECT_EQ(choices(1), choices(1));
  EXPECT_NE(choices(1), choices(2));
  const Interleaving mix = Interleaving::of_shares(weights, 1);
  const std::int64_t far = std::int64_t{1} << 60;
  const auto counts = mix.counts(far);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), far);
  EXPECT_EQ(mix.at(far).index, counts[mix.at(far).source]);
}

TEST(Interleaving, ByCountsGivesEachItsCount) {
  std::mt19937 random(3);
  for (std::size_t sources = 1; sources <= 6; ++sources) {
    std::vector<std::int64_t> counts(sources);
    for (std::int64_t& count : counts) count = 1 + static_cast<std::int64_t>(random() % 50);
    const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const Interleaving mix = Interleaving::of_counts(counts);
    EXPECT_EQ(mix.counts(all), counts);
    for (std::int64_t n = 0; n < all; ++n) EXPECT_LT(mix.at(n).index, counts[mix.at(n).source]);
  }
}

}  // namespace
}  // namespace tessera::data
