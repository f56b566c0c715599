// SPDX-License-Identifier: Apache-2.0
// Where GPUs, cores and network adapters lie, from a pretended /sys, and what is said about it.
#include "tessera/train/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"
#include "tessera/train/cores.hpp"

namespace tessera::train {
namespace {

using tessera::test::TemporaryFolder;

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A folder in place of /sys, with this process's first core at NUMA node 1.
class Placements : public testing::Test {
 protected:
  void SetUp() override {
    write("bus/pci/devices/0000:17:00.0/numa_node", "1");
    write("bus/pci/devices/0000:65:00.0/numa_node", "-1");
    for (const int core : placement_of("", sys_).cores)
      write("devices/system/node/node1/cpu" + std::to_string(core) + "/online", "1");
    write("devices/system/node/node0/cpu4095/online", "1");
    write("devices/system/node/possible", "0-1");
    write("class/net/eth1/device/numa_node", "1");
    write("class/net/eth0/device/numa_node", "0");
    fs::create_directories(sys_ / "class/net/lo");
  }
  void write(const std::string& file, const std::string& text) { folder_.file(file, text + "\n"); }
  TemporaryFolder folder_;
  fs::path sys_ = folder_.path();
};

TEST_F(Placements, AreReadFromTheSystem) {
  const Placement place = placement_of("0000:17:00.0", sys_);
  EXPECT_EQ(place.pci, "0000:17:00.0");
  EXPECT_EQ(place.gpu_numa, 1);
  EXPECT_FALSE(place.cores.empty());
  EXPECT_THAT(place.core_numas, ElementsAre(1));
  EXPECT_THAT(place.adapters, ElementsAre(Adapter{"eth0", 0}, Adapter{"eth1", 1}));
}

TEST_F(Placements, PreferInfiniBand) {
  write("class/infiniband/mlx5_0/device/numa_node", "0");
  EXPECT_THAT(placement_of("0000:17:00.0", sys_).adapters, ElementsAre(Adapter{"mlx5_0", 0}));
}

TEST_F(Placements, LeaveOutWhatTheSystemDoesNotSay) {
  EXPECT_EQ(placement_of("0000:65:00.0", sys_).gpu_numa, -1);
  const Placement place = placement_of("0000:17:00.0", sys_ / "nowhere");
  EXPECT_EQ(place.gpu_numa, -1);
  EXPECT_THAT(place.core_numas, IsEmpty());
  EXPECT_THAT(place.adapters, IsEmpty());
}

Placement placed(const std::string& pci, int gpu_numa, std::vector<int> cores,
                 std::vector<int> core_numas) {
  return {pci, gpu_numa, std::move(cores), std::move(core_numas), {{"mlx5_0", 0}, {"mlx5_1", 1}}};
}

/// Two nodes with two ranks each, bound as they should be.
std::vector<RankPlacement> four_ranks() {
  std::vector<RankPlacement> ranks;
  for (const char* host : {"node1", "node2"}) {
    ranks.push_back({host, placed("0000:17:00.0", 0, {0, 1, 2, 3, 16, 18, 19}, {0})});
    ranks.push_back({host, placed("0000:9a:00.0", 1, {8, 9}, {1})});
  }
  return ranks;
}

TEST(PlacementLines, TellNodesOfOneKindTogether) {
  const std::string text =
      "local rank 0 GPU 0000:17:00.0 (NUMA 0), cores 0-3,16,18-19 (NUMA 0); local rank 1 GPU "
      "0000:9a:00.0 (NUMA 1), "
      "cores 8-9 (NUMA 1); network mlx5_0 (NUMA 0), mlx5_1 (NUMA 1)";
  auto ranks = four_ranks();
  EXPECT_THAT(placement_lines(ranks), ElementsAre("placement on node1 and 1 more node: " + text));
  ranks[3].place.cores = {9};
  EXPECT_THAT(placement_lines(ranks),
              ElementsAre("placement on node1: " + text, HasSubstr("placement on node2: ")));
}

TEST(PlacementLines, SayWhatIsUnknown) {
  const std::vector<RankPlacement> ranks{{"node1", {"0000:01:00.0", -1, {}, {}, {}}}};
  EXPECT_THAT(
      placement_lines(ranks),
      ElementsAre(
          "placement on node1: local rank 0 GPU 0000:01:00.0, cores unknown; network unknown"));
}

TEST(PlacementWarnings, AreSilentWhereAllIsWell) {
  auto ranks = four_ranks();
  EXPECT_THAT(placement_warnings(ranks), IsEmpty());
  ranks[1].place.core_numas = {0, 1};  // a rank that may run anywhere
  ranks[3].place.gpu_numa = -1;
  EXPECT_THAT(placement_warnings(ranks), IsEmpty());
}

TEST(PlacementWarnings, NameCoresFarFromTheirGpu) {
  auto ranks = four_ranks();
  ranks[2].place.gpu_numa = ranks[3].place.gpu_numa = 3;
  EXPECT_THAT(placement_warnings(ranks),
              ElementsAre(HasSubstr(
                  "2 of 4 ranks run on cores far from their GPU, first rank 2 on node2: GPU "
                  "0000:17:00.0 is at NUMA node 3, cores 0-3,16,18-19 (NUMA 0); bind ranks")));
}

TEST(PlacementWarnings, NameRanksThatShareOneCore) {
  auto ranks = four_ranks();
  ranks[3].place.cores = {8};
  ranks[2].place = ranks[3].place;
  EXPECT_THAT(placement_warnings(ranks),
              ElementsAre(HasSubstr(
                  "all 2 ranks on node2 are bound to core 8; give each rank cores of its own")));
}

TEST(PlacementWarnings, NameRanksWithOneCoreForAllTheirThreads) {
  auto ranks = four_ranks();
  ranks[1].place.cores = {8};
  ranks[3].place.cores = {9};
  EXPECT_THAT(placement_warnings(ranks),
              ElementsAre(HasSubstr("2 of 4 ranks have one core for all their threads, first rank "
                                    "1 on node1: core 8 (NUMA 1); give each rank more")));
}

TEST(PlacementText, Travels) {
  const RankPlacement sent = four_ranks()[1], got = rank_placement_of(text_of(sent));
  EXPECT_EQ(got.host, "node1");
  EXPECT_EQ(got.place, sent.place);
}

}  // namespace
}  // namespace tessera::train
