// SPDX-License-Identifier: Apache-2.0
#include "tessera/schedule/traits.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/schedule/schedule.hpp"

namespace tessera::schedule {
namespace {

constexpr int kRanks = 4, kMicrobatches = 8;

TEST(Traits, AreFoundByNameAndByKind) {
  for (const Traits& traits : all_traits()) {
    EXPECT_EQ(find_traits(traits.name), &traits);
    EXPECT_EQ(&traits_of(traits.kind), &traits);
    EXPECT_TRUE(traits.paper.starts_with("https://")) << traits.name;
  }
  EXPECT_EQ(names().size(), all_traits().size());
  EXPECT_EQ(find_traits("2F2B"), nullptr);
  EXPECT_EQ(find_traits("PipelineScheduleMulti"), nullptr);
}

TEST(Traits, SayWhatTheListsDo) {
  for (const Traits& traits : all_traits()) {
    const ActionLists lists = compute_orders(traits.kind, traits.usual_map(kRanks), kMicrobatches);
    const int all = traits.usual_stages() * kMicrobatches;
    const auto keeps_all = [all](const ActionList& list) { return peak_activations(list) == all; };
    const auto splits = [](const ActionList& list) {
      return std::ranges::any_of(
          list, [](const Action& a) { return a.kind == ActionKind::weight_gradient; });
    };
    EXPECT_EQ(std::ranges::all_of(lists, keeps_all), traits.keeps_all) << traits.name;
    EXPECT_EQ(std::ranges::any_of(lists, splits), traits.splits_backward) << traits.name;
  }
}

TEST(Traits, StagesPerRank) {
  EXPECT_TRUE(fits(StagesPerRank::one, 4, 4));
  EXPECT_FALSE(fits(StagesPerRank::one, 8, 4));
  EXPECT_TRUE(fits(StagesPerRank::two, 8, 4));
  EXPECT_FALSE(fits(StagesPerRank::two, 16, 4));
  for (const int stages : {8, 12}) EXPECT_TRUE(fits(StagesPerRank::several, stages, 4)) << stages;
  for (const int stages : {4, 9}) EXPECT_FALSE(fits(StagesPerRank::several, stages, 4)) << stages;
}

TEST(Traits, Microbatches) {
  EXPECT_EQ(traits_of(Kind::one_f_one_b).least_microbatches(4), 4);
  EXPECT_EQ(traits_of(Kind::dual_pipe_v).least_microbatches(4), 8);
  EXPECT_EQ(traits_of(Kind::interleaved).least_microbatches(4), 0);
  const Traits& rounds = traits_of(Kind::interleaved);
  for (const int microbatches : {1, 3, 4, 7, 8, 12})
    EXPECT_TRUE(rounds.fills_rounds(microbatches, 4)) << microbatches;
  for (const int microbatches : {9, 11, 13})
    EXPECT_FALSE(rounds.fills_rounds(microbatches, 4)) << microbatches;
  EXPECT_TRUE(traits_of(Kind::looped_bfs).fills_rounds(9, 4));
}

}  // namespace
}  // namespace tessera::schedule
