// SPDX-License-Identifier: Apache-2.0
#include "tessera/mesh/layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"

namespace tessera::mesh {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

std::string message_of(const Degrees& degrees, int world) {
  return error_of(ExitCode::usage, [&] { Layout::resolve(degrees, world); });
}

std::vector<Rank> ranks(std::initializer_list<int> numbers) {
  std::vector<Rank> ranks;
  for (const int number : numbers) ranks.push_back(Rank(number));
  return ranks;
}

/// Every factorisation of `world` into five degrees.
std::vector<Layout> all_layouts(int world) {
  std::vector<Layout> layouts;
  for (int pp = 1; pp <= world; ++pp)
    for (int r = 1; r <= world; ++r)
      for (int s = 1; s <= world; ++s)
        for (int c = 1; c <= world; ++c)
          for (int t = 1; t <= world; ++t)
            if (pp * r * s * c * t == world)
              layouts.push_back(Layout::resolve({pp, r, s, c, t}, world));
  return layouts;
}

TEST(Layout, FillsTheRest) {
  EXPECT_EQ(Layout::resolve({}, 8).degree(Axis::dp_shard), 8);
  EXPECT_EQ(Layout::resolve({.pp = 2, .tp = 2}, 8).degree(Axis::dp_shard), 2);
  EXPECT_EQ(Layout::resolve({.pp = 2, .dp_shard = 1, .tp = -1}, 8).degree(Axis::tp), 4);
  EXPECT_EQ(Layout::resolve({}, 1).world(), 1);
  EXPECT_EQ(Layout::resolve({.pp = 8, .tp = 8}, 16384).degree(Axis::dp_shard), 256);
}

TEST(Layout, SaysWhatWouldBeAllowed) {
  EXPECT_EQ(message_of({.pp = 2, .tp = 3}, 8),
            "pp 2 x tp 3 = 6 does not divide 8 ranks; with pp 2, set tensor_parallel_degree to 1, "
            "2 or 4");
  EXPECT_EQ(message_of({.dp_shard = 2, .tp = 2}, 8),
            "dp_shard 2 x tp 2 = 4 does not make 8 ranks; with dp_shard 2, set "
            "tensor_parallel_degree to 4");
  EXPECT_EQ(message_of({.tp = 3}, 8),
            "tp 3 does not divide 8 ranks; set tensor_parallel_degree to 1, 2, 4 or 8");
  EXPECT_EQ(message_of({.pp = -1}, 8),
            "pp and dp_shard are both -1; only one axis can be -1 (the remaining ranks)");
  EXPECT_THAT(message_of({.tp = 0}, 8), HasSubstr("tp 0 is not a degree; use 1 or more, or -1"));
  EXPECT_THAT(message_of({.tp = -7}, 8), HasSubstr("tp -7 is not a degree"));
  EXPECT_THAT(message_of({.dp_shard = 1}, 8),
              HasSubstr("the product of all degrees, 1, does not make 8 ranks"));
  EXPECT_THAT(message_of({.pp = 3, .tp = 5}, 8),
              HasSubstr("pp 3 x tp 5 = 15 does not divide 8 ranks"));
  EXPECT_THAT(message_of({.pp = 1 << 30, .tp = 1 << 30}, 8), HasSubstr("more than supported"));
  EXPECT_THAT(message_of({}, 0), HasSubstr("a mesh of 0 ranks"));
}

TEST(Layout, CoordinatesAndRanksAreInverse) {
  for (const int world : {1, 2, 6, 8, 12}) {
    for (const Layout& layout : all_layouts(world)) {
      std::set<Coord> seen;
      for (const Rank rank : layout.ranks()) {
        EXPECT_EQ(layout.rank_of(layout.coord_of(rank)), rank);
        seen.insert(layout.coord_of(rank));
      }
      EXPECT_EQ(static_cast<int>(seen.size()), world);
    }
  }
}

TEST(Layout, TensorParallelRanksAreNeighbours) {
  const Layout layout =
      Layout::resolve({.pp = 2, .dp_replicate = 2, .dp_shard = 2, .cp = 2, .tp = 2}, 32);
  EXPECT_EQ(layout.group_of(Rank(5), {Axis::tp}), ranks({4, 5}));
  EXPECT_EQ(layout.group_of(Rank(5), {Axis::pp}), ranks({5, 21}));
  EXPECT_EQ(layout.group_of(Rank(5), {Axis::cp, Axis::dp_shard}), ranks({1, 3, 5, 7}));
  EXPECT_EQ(layout.rank_of({1, 0, 1, 1, 0}), Rank(16 + 4 + 2));
  EXPECT_EQ(layout.to_string(), "pp2.r2.s2.cp2.tp2");
  EXPECT_EQ(layout.coord_name(Rank(22)), "pp1.r0.s1.cp1.tp0");
}

/// Groups of one kind tile the world, hold their own rank, and are the same for all of their
/// members.
TEST(Layout, GroupsTileTheWorld) {
  const std::vector<std::vector<Axis>> kinds{
      {Axis::tp}, {Axis::pp}, {Axis::dp_shard, Axis::cp}, {Axis::pp, Axis::tp}, {}};
  for (const Layout& layout : all_layouts(12)) {
    for (const auto& axes : kinds) {
      std::set<std::vector<Rank>> groups;
      for (const Rank rank : layout.ranks()) {
        const auto group = layout.group_of(rank, axes);
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        EXPECT_TRUE(std::count(group.begin(), group.end(), rank) == 1);
        for (const Rank member : group) EXPECT_EQ(layout.group_of(member, axes), group);
        groups.insert(group);
      }
      std::size_t members = 0;
      for (const auto& group : groups) members += group.size();
      EXPECT_EQ(members, 12u);
    }
  }
}

TEST(Layout, NumbersDataRanks) {
  for (const Layout& layout : all_layouts(8)) {
    std::vector<int> readers(static_cast<std::size_t>(layout.dp_degree()));
    for (const Rank rank : layout.ranks())
      ++readers.at(static_cast<std::size_t>(layout.dp_rank(rank)));
    for (int count : readers) EXPECT_EQ(count, 8 / layout.dp_degree());
  }
}

/// ep is fastest; efsdp x ep are the ranks that are borrowed, each once, and stay in one stage and
/// one replica.
TEST(ExpertView, SharesTheBorrowedRanksOut) {
  for (const int etp : {1, 2})
    for (const int ep : {1, 2, 4}) {
      Degrees degrees{.pp = 2, .dp_replicate = 2, .dp_shard = 4, .cp = 1, .tp = 2};
      degrees.ep = ep;
      degrees.etp = etp;
      const Layout layout = Layout::resolve(degrees, 32);
      const int borrowed = etp == 1 ? 8 : 4;
      for (const Rank rank : layout.ranks()) {
        const std::vector<Rank> peers = layout.expert_group_of(rank),
                                sharers = layout.expert_shard_group_of(rank);
        EXPECT_EQ(static_cast<int>(peers.size()), ep);
        EXPECT_EQ(static_cast<int>(sharers.size()), borrowed / ep);
        std::set<Rank> reached;
        for (const Rank peer : peers)
          for (const Rank sharer : layout.expert_shard_group_of(peer)) reached.insert(sharer);
        EXPECT_EQ(static_cast<int>(reached.size()), borrowed);
        for (const Rank other : reached) {
          EXPECT_EQ(layout.coord_of(other)[Axis::pp], layout.coord_of(rank)[Axis::pp]);
          EXPECT_EQ(layout.coord_of(other)[Axis::dp_replicate],
                    layout.coord_of(rank)[Axis::dp_replicate]);
          if (etp > 1) {
            EXPECT_EQ(layout.coord_of(other)[Axis::tp], layout.coord_of(rank)[Axis::tp]);
          }
        }
      }
    }
  Degrees degrees{.dp_shard = 4, .tp = 2};
  degrees.ep = 4;
  EXPECT_EQ(Layout::resolve(degrees, 8).expert_group_of(Rank(5)), ranks({4, 5, 6, 7}));
  EXPECT_EQ(Layout::resolve(degrees, 8).expert_shard_group_of(Rank(5)), ranks({1, 5}));
}

TEST(ExpertView, MistakesSayWhatWouldDo) {
  Degrees degrees{.dp_shard = 3, .tp = 2};
  degrees.ep = 4;
  EXPECT_THAT(message_of(degrees, 6),
              HasSubstr("expert_parallel_degree 4 does not divide the 6 ranks that it regroups "
                        "(dp_shard 3 x cp 1 x tp 2); it may be 1, 2, 3 or 6"));
  degrees.etp = 3;
  EXPECT_THAT(message_of(degrees, 6), HasSubstr("neither 1 nor tensor_parallel_degree 2"));
}

}  // namespace
}  // namespace tessera::mesh
