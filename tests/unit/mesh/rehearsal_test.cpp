// SPDX-License-Identifier: Apache-2.0
// A mesh of recording communicators: one rank of a large job, without the job.
#include <gtest/gtest.h>

#include "tessera/mesh/device_mesh.hpp"

namespace tessera::mesh {
namespace {

TEST(Rehearsal, OneRankOfALargeJob) {
  const Layout layout = Layout::resolve({.pp = 16, .dp_replicate = 2, .tp = 8}, 16384);
  const Rank rank = layout.rank_of({15, 1, 63, 0, 7});
  DeviceMesh mesh(layout, rank);
  EXPECT_EQ(mesh.rank(), rank);
  EXPECT_EQ(mesh.along(Axis::pp).size(), 16);
  EXPECT_EQ(mesh.along(Axis::pp).rank(), 15);
  EXPECT_EQ(mesh.along(Axis::pp).backend(), "recording");
  EXPECT_EQ(mesh.along(Axis::cp).backend(), "self");
  EXPECT_EQ(mesh.along({Axis::dp_replicate, Axis::dp_shard, Axis::cp}).size(), 128);
  EXPECT_EQ(&mesh.along({Axis::dp_shard, Axis::cp}), &mesh.along(Axis::dp_shard));
  ASSERT_NE(mesh.embedding_group(), nullptr);
  EXPECT_EQ(mesh.embedding_group()->size(), 2);
  EXPECT_EQ(mesh.embedding_group()->rank(), 1);
  EXPECT_EQ(DeviceMesh(layout, layout.rank_of({7, 0, 0, 0, 0})).embedding_group(), nullptr);
  EXPECT_EQ(mesh.control().size(), 16384);
}

TEST(Rehearsal, HasNeighbours) {
  DeviceMesh mesh(Layout::resolve({}, 16), Rank(11));
  comm::Communicator& near = mesh.neighbours(mesh.along(Axis::dp_shard), 8);
  EXPECT_EQ(near.size(), 8);
  EXPECT_EQ(near.rank(), 3);
  EXPECT_EQ(&mesh.neighbours(mesh.along(Axis::dp_shard), 8), &near);
}

TEST(Rehearsal, HasPairsOfAPipeline) {
  const Layout layout = Layout::resolve({.pp = 4}, 4);
  EXPECT_EQ(DeviceMesh(layout, Rank(1)).pipeline_pair(1, 2)->rank(), 0);
  EXPECT_EQ(DeviceMesh(layout, Rank(2)).pipeline_pair(1, 2)->rank(), 1);
  EXPECT_EQ(DeviceMesh(layout, Rank(3)).pipeline_pair(1, 2), nullptr);
}

TEST(Rehearsal, OverviewNamesEveryAxis) {
  const DeviceMesh mesh(Layout::resolve({.pp = 2, .tp = 2}, 8), Rank(3));
  EXPECT_EQ(mesh.overview(),
            "mesh pp2.r1.s2.cp1.tp2 of 8 ranks\n"
            "  axis          degree  backend   group of rank 0\n"
            "  pp                 2  recording 0, 4\n"
            "  dp_replicate       1  self      0\n"
            "  dp_shard           2  recording 0, 2\n"
            "  cp                 1  self      0\n"
            "  tp                 2  recording 0, 1\n");
}

TEST(Rehearsal, OverviewOfOneRankIsOneLine) {
  EXPECT_EQ(DeviceMesh(Layout::resolve({}, 1), Rank(0)).overview(), "mesh of 1 rank\n");
}

}  // namespace
}  // namespace tessera::mesh
