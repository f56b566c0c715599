// SPDX-License-Identifier: Apache-2.0
#include "tessera/mesh/device_mesh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"

namespace tessera::mesh {
namespace {

using comm::Backend;
using test::world;

/// The world ranks of a communicator's members, in its order, as they themselves say.
std::vector<Rank> members_of(comm::Communicator& communicator) {
  const comm::Memory memory = test::test_memory();
  test::Values mine(DType::i32, 1, world().rank(), memory),
      all(DType::i32, communicator.size(), -1, memory);
  communicator.all_gather(mine.buffer(), all.buffer()).wait();
  std::vector<Rank> ranks;
  for (int r = 0; r < communicator.size(); ++r) ranks.push_back(Rank(static_cast<int>(all[r])));
  return ranks;
}

const std::vector<std::vector<Axis>>& usual() {
  using enum Axis;
  static const std::vector<std::vector<Axis>> axes{{pp},
                                                   {dp_replicate},
                                                   {dp_shard},
                                                   {cp},
                                                   {tp},
                                                   {dp_shard, cp},
                                                   {dp_replicate, dp_shard},
                                                   {dp_replicate, dp_shard, cp},
                                                   {pp, tp},
                                                   {dp_replicate, dp_shard, cp, tp},
                                                   {pp, dp_replicate, dp_shard, cp, tp}};
  return axes;
}

std::vector<Layout> layouts_of(int n) {
  std::vector<Layout> layouts;
  for (int pp = 1; pp <= n; pp *= 2)
    for (int r = 1; pp * r <= n; r *= 2)
      for (int s = 1; pp * r * s <= n; s *= 2)
        for (int c = 1; pp * r * s * c <= n; c *= 2)
          if (pp * r * s * c <= n && n % (pp * r * s * c) == 0)
            layouts.push_back(Layout::resolve({pp, r, s, c, n / (pp * r * s * c)}, n));
  return layouts;
}

void check(const Layout& layout, Backend backend) {
  DeviceMesh mesh(world(), layout, backend, {}, test::test_memory());
  for (const auto& axes : usual())
    EXPECT_EQ(members_of(mesh.along(axes)), layout.group_of(mesh.rank(), axes))
        << layout.to_string();
  for (Axis axis : kAxes) {
    EXPECT_EQ(mesh.along(axis).rank(), mesh.coord(axis));
    EXPECT_EQ(mesh.along(axis).size(), layout.degree(axis));
  }
  const int pp = layout.degree(Axis::pp), stage = mesh.coord(Axis::pp);
  comm::Communicator* ends = mesh.embedding_group();
  ASSERT_EQ(ends != nullptr, stage == 0 || stage == pp - 1) << layout.to_string();
  if (!ends) return;
  Coord first = mesh.coord(), last = mesh.coord();
  first[Axis::pp] = 0;
  last[Axis::pp] = pp - 1;
  const std::vector<Rank> expected =
      pp == 1 ? std::vector{mesh.rank()} : std::vector{layout.rank_of(first), layout.rank_of(last)};
  EXPECT_EQ(members_of(*ends), expected) << layout.to_string();
}

Backend usual_backend() { return test::on_device() ? Backend::nccl : Backend::mpi; }

TEST(DeviceMesh, GroupsOfEveryLayout) {
  for (const Layout& layout : layouts_of(world().size())) check(layout, usual_backend());
}

TEST(DeviceMesh, GroupsOfSomeLayoutsOverOtherBackends) {
  const auto layouts = layouts_of(world().size());
  for (std::size_t i = 0; i < layouts.size(); i += 7)
    check(layouts[i], i % 2 ? Backend::mpi : Backend::strict);
}

TEST(DeviceMesh, DecoratesEachCommunicatorOnce) {
  const int n = world().size();
  if (n < 4 || n % 4 != 0) GTEST_SKIP() << "experts on two ranks, shared by two";
  std::vector<std::string> decorated;
  const auto note = [&](std::unique_ptr<comm::Communicator> communicator) {
    decorated.push_back(communicator->axis());
    return communicator;
  };
  const DeviceMesh mesh(world(), Layout::resolve({.dp_shard = n / 2, .tp = 2, .ep = 2}, n),
                        usual_backend(), note, test::test_memory());
  EXPECT_THAT(decorated,
              testing::UnorderedElementsAre("dp_shard", "tp", "dp_shard+tp", "ep", "efsdp"));
}

TEST(DeviceMesh, SharesCommunicatorsOfEqualGroups) {
  DeviceMesh mesh(world(), Layout::resolve({.pp = world().size() % 2 ? 1 : 2}, world().size()),
                  usual_backend());
  EXPECT_EQ(&mesh.along({Axis::dp_shard, Axis::cp}),
            &mesh.along({Axis::dp_replicate, Axis::dp_shard, Axis::cp}));
  EXPECT_EQ(mesh.embedding_group(), &mesh.along(Axis::pp));
  if (world().size() > 2) {
    EXPECT_EQ(&mesh.along({Axis::dp_shard, Axis::cp}), &mesh.along(Axis::dp_shard));
  }
  EXPECT_EQ(&mesh.control(), &world().control());
  EXPECT_THAT(mesh.overview(), testing::HasSubstr(world().host()));
}

}  // namespace
}  // namespace tessera::mesh

int main(int argc, char** argv) { return tessera::test::run_ranks(argc, argv); }
